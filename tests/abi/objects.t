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

# objects_of FOLDER…: what is built of their files. Objects of files that are gone may still be there.
objects_of() {
    find "$@" -name '*.c' | while read -r file; do
        object=$build/${file%.c}.o
        [ ! -e "$object" ] || echo "$object"
    done
}
mapfile -t core < <(objects_of src/{base,core,pool,quorum,lock,rows,api,admin})
mapfile -t drivers < <(objects_of src/drivers)
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
is "only wait.o sleeps" "$(undefined '(sleep|usleep|nanosleep|clock_nanosleep)' "${core[@]}" "${drivers[@]}" |
        grep -v '/wait\.o:')" ""

# only WHO PATTERN: the objects besides WHO that want a name of this pattern.
only() { undefined "$2" "${core[@]}" "${drivers[@]}" | grep -v "/$1\.o:"; }
clocks='(clock_gettime|gettimeofday|time|clock|ftime|timespec_get)'
draws='(getrandom|getentropy|arc4random.*|s?rand(om)?(_r)?|[de]rand48|sqlite3_randomness|RAND_bytes)'
is "only clock.o reads a clock" "$(only clock "$clocks")" ""
is "only random.o draws random numbers" "$(only random "$draws")" ""
threads='(pthread_(create|join|detach|self|equal|(mutex|rwlock|spin)_[a-z]*lock|cond_(wait|timedwait|clockwait|signal|broadcast))|thrd_.*|mtx_.*|sched_yield)'
is "only thread.o starts, joins and excludes threads" "$(only thread "$threads")" ""
# A driver may ask a socket for its state.
is "only wait.o waits" "$(only wait '(sem_.*|poll|ppoll|select|pselect|epoll_.*)' | grep -vE '/drivers/.*: poll$')" ""

done_testing
