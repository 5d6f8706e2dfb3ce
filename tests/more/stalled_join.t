#!/usr/bin/env bash
# A quorum-join that has its turn is stopped for longer than its tickets last, and another one goes
# on. The first one must not write what it was about to write: the members would not vote then.
#
# usage: tests/lib/run-test.sh tests/more/stalled_join.t
. "$(dirname "$0")/../cli/cli.sh"

ROWLOCK_URL="sqlite:$work/1.db sqlite:$work/2.db sqlite:$work/3.db"
export ROWLOCK_URL
marks() {
    local n
    for n in 1 2 3; do sqlite3 "$work/$n.db" "SELECT member, self, mark FROM rowlock_members ORDER BY member"; done
}
waits() { grep -q "waiting .* for leases to end" "$work/first"; }
# Like a program that was just paused: it waits for leases, in the queue of each member.
begin() {
    sqlite3 "$work/1.db" "DELETE FROM rowlock_members"
    rl acquire held --ttl 4s --owner holder
    "$command" quorum-join >"$work/first" 2>&1 </dev/null &
    first=$!
}

rl install
exits "three files are a quorum" 0 quorum-join
begin
holds "a join has its turn, and waits for a lease to end" until_true 20 waits
kill -STOP "$first"
exits "it is stopped, and another one joins" 0 quorum-join
before=$(marks)
exits "all members vote then" 0 check
kill -CONT "$first"
wait "$first"
same "the first one goes on, and ends well" "$?" 0
same "it has written no marks" "$(marks)" "$before"
exits "all members vote" 0 check
same "it has left no ticket" "$(for n in 1 2 3; do sqlite3 "$work/$n.db" "SELECT count(*) FROM rowlock_waiters"; done | xargs)" "0 0 0"

begin
holds "a join has its turn again" until_true 20 waits
kill -KILL "$first"
wait "$first" 2>/dev/null
exits "it is killed, and another one joins" 0 quorum-join
exits "all members vote once more" 0 check
done_testing
