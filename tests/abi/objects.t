#!/usr/bin/env bash
# What the library's objects refer to: only drivers name a vendor's functions, and no object prints or exits.
. "$(dirname "$0")/../lib/tap.sh"

build=${ROWLOCK_TEST_BUILD:-build}
[ -d "$build/src" ] || skip_all "no objects in $build/src"

# undefined PATTERN OBJECT…: the undefined names that match, with the object that wants them.
undefined() {
    local pattern=$1
    shift
    nm -A --undefined-only "$@" | awk '{ sub(/:.*/, "", $1); print $1 ": " $NF }' |
        grep -E ": $pattern\$" || true
}

core=("$build"/src/{base,core,pool,quorum,lock,rows,api,admin}/*.o)
shopt -s nullglob
drivers=("$build"/src/drivers/*.o "$build"/src/drivers/*/*.o)
shopt -u nullglob
postgres='(PQ|pq|lo_)[A-Za-z]+'
mysql='(mysql|mariadb|ma)_[a-z0-9_]+'
sqlite='sqlite3_[a-z0-9_]+'

is "core objects name no vendor's symbol" "$(undefined "($postgres|$mysql|$sqlite)" "${core[@]}")" ""

# That no driver calls another is in structure.t.
for driver in "${drivers[@]}"; do
    name=${driver#"$build"/src/drivers/}
    case $name in
        postgres*) others="$mysql|$sqlite" ;;
        mysql*) others="$postgres|$sqlite" ;;
        sqlite*) others="$postgres|$mysql" ;;
        *) others="$postgres|$mysql|$sqlite" ;;
    esac
    is "${name%.o} names no other vendor's symbol" "$(undefined "($others)" "$driver")" ""
done

ends='(exit|_exit|_Exit|abort|quick_exit|__assert_fail)'
prints='(__)?v?(f|d)?printf(_chk)?|v?printf|puts|fputs|putchar|putc|fputc|_IO_putc|fwrite|perror|psignal'
is "the library never ends the process" "$(undefined "$ends" "${core[@]}" "${drivers[@]}")" ""
is "the library never prints" "$(undefined "($prints|stdout|stderr)" "${core[@]}" "${drivers[@]}")" ""
is "the library installs no signal handler" \
    "$(undefined '(signal|sigaction|bsd_signal|sigset)' "${core[@]}" "${drivers[@]}")" ""
is "only wait.o sleeps" \
    "$(undefined '(sleep|usleep|nanosleep|clock_nanosleep)' "${core[@]}" "${drivers[@]}" |
        grep -v '/wait\.o:')" ""

# A machine says what comes next, and its caller does that. More machines are listed in tools/structure.
machines=("$build"/src/quorum/{majority,quorum_grant,voters}.o)
pure='(mem|str)[a-z]+|rlk_(grant_next|answer_token|view_vote)'
of_compiler='__(gcov|asan|ubsan|tsan|stack_chk|sanitizer)\w*|_GLOBAL_OFFSET_TABLE_'
is "the machines of a quorum call nothing that waits, reads a clock, draws, locks or sends" \
    "$(undefined '.*' "${machines[@]}" | grep -vE ": ($pure|$of_compiler)\$")" ""

done_testing
