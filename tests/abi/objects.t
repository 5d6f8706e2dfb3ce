#!/usr/bin/env bash
# What the library's objects refer to: only drivers name a vendor's functions, and nobody prints or exits.
set -u
# shellcheck source=tests/lib/tap.sh
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

core=("$build"/src/*.o "$build"/src/rows/*.o)
drivers=("$build"/src/backend/*.o)
postgres='(PQ|pq|lo_)[A-Za-z]+'
mysql='(mysql|mariadb|ma)_[a-z0-9_]+'
sqlite='sqlite3_[a-z0-9_]+'

is "core objects name no vendor's symbol" "$(undefined "($postgres|$mysql|$sqlite)" "${core[@]}")" ""

for driver in "${drivers[@]}"; do
    case $driver in
        *postgres.o) others="$mysql|$sqlite" ;;
        *mysql.o) others="$postgres|$sqlite" ;;
        *sqlite.o) others="$postgres|$mysql" ;;
        *) others="$postgres|$mysql|$sqlite" ;;
    esac
    name=$(basename "$driver" .o)
    is "the $name driver names no other vendor's symbol" "$(undefined "($others)" "$driver")" ""
    if [ "$name" != mysql ]; then
        is "the $name driver does not refer to another driver" \
            "$(undefined 'rlk_mysql_.*' "$driver")" ""
    fi
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

done_testing
