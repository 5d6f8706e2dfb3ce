#!/usr/bin/env bash
# Runs one test program for prove, in a private folder and with a time limit.
#
# usage: run-test.sh PROGRAM
#   TMPDIR                   becomes a private folder, removed afterwards
#   ROWLOCK_TEST_SQLITE_URL  @TMPDIR@ in it becomes that folder
#   ROWLOCK_TEST_TIMEOUT     seconds until the program and its children are ended (900)
#   ROWLOCK_TEST_WRAPPER     a command to put before a compiled program, such as valgrind
#   ROWLOCK_TEST_OWN_SERVERS=1  a program with a server in its name gets a new server, or two, except
#                            those in cli/ and fuzz/, and scripts in quorum/, which start their own
#   ROWLOCK_TEST_RUN         a folder whose file "failed" gets the failed checks (run-tests.sh)
#   SKIPS_AS_FAILS=1         a program that skips all its tests has failed: its server is missing. So has
#                            what a script skips with skip of tap.sh
set -u

program=$1

# With servers of their own, programs that count statements or restart the server can run in
# parallel. One with both names gets both.
if [ "${ROWLOCK_TEST_OWN_SERVERS:-0}" = 1 ]; then
    servers=()
    for kind in postgres mysql; do
        case $program in
            */cli/* | */fuzz/* | */quorum/*.t) ;;
            */*"$kind"*)
                unset "ROWLOCK_TEST_${kind^^}_URL" "ROWLOCK_TEST_${kind^^}_DIR"
                servers+=("$(dirname "$0")/with-$kind.sh")
                ;;
        esac
    done
    unset ROWLOCK_TEST_OWN_SERVERS
    [ "${#servers[@]}" = 0 ] || exec "${servers[@]}" "$0" "$program"
fi

limit=${ROWLOCK_TEST_TIMEOUT:-900}
read -ra command <<<"${ROWLOCK_TEST_WRAPPER:-}"
case $program in *.t) command=() ;; esac
command+=("$program")

# shellcheck source=tests/lib/scratch.sh
. "$(dirname "$0")/scratch.sh"
TMPDIR=$(mktemp -d "$(scratch_base)/rowlock-test.XXXXXX") || exit 1
trap 'rm -rf "$TMPDIR" "$TMPDIR.failed"' EXIT
# A server that a test starts under another account must be able to enter.
chmod 711 "$TMPDIR"
export TMPDIR

# Tests must not touch the user's own locks by mistake.
unset ROWLOCK_URL
export XDG_STATE_HOME=$TMPDIR/state
if [ -n "${ROWLOCK_TEST_SQLITE_URL:-}" ]; then
    export ROWLOCK_TEST_SQLITE_URL=${ROWLOCK_TEST_SQLITE_URL//@TMPDIR@/$TMPDIR}
fi

# The output goes through a filter, which keeps the lines of failed checks and their places.
skips=
if [ "${SKIPS_AS_FAILS:-0}" = 1 ]; then
    skips='s/^1\.\.0 *# *[Ss][Kk][Ii][Pp]\(.*\)/1..1\nnot ok 1 - skipped:\1/'
fi
failed=$TMPDIR.failed
exec 4>&1
exec > >(sed -u -e "$skips" -e "/^not ok /w $failed" -e "/^Bail out!/w $failed" -e "/^# tests\/.*:[0-9]*\$/w $failed" >&4)
filter=$!

# tell_failed STATUS: a line for each failed check, and the command that runs its program alone.
tell_failed() {
    local name=${program##*tests/}
    awk -v name="$name" -v status="$1" '
        /^not ok|^Bail out!/ { sub(/^not ok [0-9]+ (- )?/, ""); lines[++n] = $0; next }
        n && lines[n] !~ /\(tests\// { lines[n] = lines[n] " (" $2 ")" }
        END {
            print "  " name ", which ended with status " status
            for (i = 1; i <= n; i++) print "      " lines[i]
            print "      alone: make check TESTS=" name
        }' "$failed" >>"$ROWLOCK_TEST_RUN/failed"
}

# The shell makes background jobs ignore INT and QUIT. Tests of signals must not inherit that.
passing_signals timeout --kill-after=10 "$limit" env --default-signal=INT,QUIT "${command[@]}" 4>&-
status=$?
if [ "$status" = 124 ]; then
    echo "# $program was stopped after $limit seconds" >&2
fi
exec >&4
wait "$filter"
[ "$status" = 0 ] || [ -z "${ROWLOCK_TEST_RUN:-}" ] || tell_failed "$status"
exit "$status"
