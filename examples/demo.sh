#!/usr/bin/env bash
# Shows rowlock at work in less than a minute: two rivals for one lock, a killed holder, a sweep.
# It uses an embedded database in a private folder, or the one that ROWLOCK_URL names. It fails if a
# result is not as described.
set -euo pipefail
cd "$(dirname "$0")/.."

rowlock=$PWD/build/rowlock
[ -x "$rowlock" ] || {
    echo "demo: there is no build/rowlock yet: run make first" >&2
    exit 1
}

dir=$(mktemp -d)
jobs=()
cleanup() {
    kill "${jobs[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ -z "${ROWLOCK_URL:-}" ]; then
    export ROWLOCK_URL=sqlite:$dir/locks.db
fi
report=demo-$$-report
import=demo-$$-import

tell() { printf '\n%s\n' "$*"; }

fail() {
    printf '\nNOT AS TOLD: %s\n' "$*" >&2
    exit 1
}

# show COMMAND…: prints it as a user would type it, and runs it.
show() {
    printf '  $ rowlock'
    printf ' %s' "$@"
    printf '\n'
    "$rowlock" "$@" | sed 's/^/    /'
}

# start WHO ARGUMENT…: runs rowlock in the background. WHO begins each line. Sets $pid.
start() {
    local who=$1
    shift
    "$rowlock" "$@" > >(sed -u "s/^/    $who: /") 2>&1 &
    pid=$!
    jobs+=("$pid")
}

# kill_hard PID: kills it without the shell's message.
kill_hard() {
    { kill -9 "$1" && wait "$1"; } 2>/dev/null || true
}

# until_there FILE: waits for the file that a job writes when it begins.
until_there() {
    local try
    for ((try = 0; try < 3000; try++)); do
        [ ! -s "$1" ] || return 0
        sleep 0.02
    done
    fail "no job wrote $1"
}

# field NAME: of what the database has of the report lock, the first one.
field() { "$rowlock" show "$report" --json | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" | head -n 1; }

token_in() { sed -n 's/^token //p' "$1"; }

# The work of a job. It notes its token, and when it began and ended.
cat >"$dir/job" <<'JOB'
#!/bin/sh
# job FILE SECONDS
echo "working with token $ROWLOCK_TOKEN"
printf 'token %s\npid %s\nbegan %s\n' "$ROWLOCK_TOKEN" $$ "$(date +%s%N)" >"$1"
[ "$2" -lt 600 ] || exec sleep "$2"
sleep "$2"
echo "ended $(date +%s%N)" >>"$1"
echo "done"
JOB

tell "1. The tables. Every database understands the same commands; here it is ${ROWLOCK_URL%%:*}."
show install

tell "2. Anna runs a job under a lock. Ben wants the same lock, and waits."
start Anna run -v "$report" -- sh "$dir/job" "$dir/anna" 4
anna=$pid
until_there "$dir/anna"
start Ben run -v "$report" -- sh "$dir/job" "$dir/ben" 1
ben=$pid
sleep 1
show list
wait "$anna" || fail "Anna's job failed"
wait "$ben" || fail "Ben's job failed"
sleep 0.2
[ "$(sed -n 's/^began //p' "$dir/ben")" -gt "$(sed -n 's/^ended //p' "$dir/anna")" ] ||
    fail "Ben began before Anna had ended"
[ "$(token_in "$dir/ben")" -gt "$(token_in "$dir/anna")" ] ||
    fail "Ben's token is not greater than Anna's"

tell "3. Carl has the lock with a lease of 4 seconds, which rowlock renews. kill -9 ends rowlock."
start Carl run --ttl 4s "$report" -- sh "$dir/job" "$dir/carl" 600
carl=$pid
until_there "$dir/carl"
sleep 2
kill_hard "$carl"
ends=$(field expires_us)
show list
echo "    It is not renewed now. Dora waits for the rest of the lease, not longer:"
start Dora run -v "$report" -- sh "$dir/job" "$dir/dora" 1
wait "$pid" || fail "Dora's job failed"
sleep 0.2
waited=$((($(field last_granted_us) - ends) / 1000))
echo "    She got it $waited ms after the end of Carl's lease, with a greater token than Carl's."
[ "$waited" -ge 0 ] || fail "Dora got the lock while Carl's lease was running"
[ "$waited" -lt 60000 ] || fail "Dora had to wait for more than the lease"
[ "$(token_in "$dir/dora")" -gt "$(token_in "$dir/carl")" ] || fail "Dora's token is not greater"
! kill -0 "$(sed -n 's/^pid //p' "$dir/carl")" 2>/dev/null || fail "Carl's job outlived its rowlock"

tell "4. Another holder dies, and no client waits. It is listed as expired until a sweep."
start Emil run --ttl 1s "$import" -- sh "$dir/job" "$dir/emil" 600
emil=$pid
until_there "$dir/emil"
kill_hard "$emil"
sleep 2
show list
"$rowlock" list | grep -F "$import" | grep -q expired || fail "$import is not listed as expired"
show sweep --idle never
if "$rowlock" list | grep -qF "$import"; then
    fail "$import is still there after the sweep"
fi

cat <<'SAW'

What you saw:
  - one of two rivals waited until the other was done;
  - a lock whose holder was killed went to the next one when its lease was over, not before;
  - the tokens only grew: a resource that checks them is safe from a holder that wakes up late;
  - what no client wanted was swept.
Try it yourself:  build/rowlock run -v mylock -- sleep 10
Set ROWLOCK_URL to a PostgreSQL or MariaDB and run the demo again to see the same there.
SAW
