#!/usr/bin/env bash
# Commits wait for a synchronous standby of PostgreSQL that is away, and a client cancels them. PostgreSQL
# then answers success, with a warning, although the standby lacks them. Then the primary dies. A place in the
# queue may be lost: its waiter was not told of it.
. "$(dirname "$0")/postgres.sh"

cancel_waits() {
    postgres_shell "$primary" \
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
}

make_pair sync
load_begin cancelled
load_goes_on "locks are granted"
postgres_stop "$standby"
load_mark cut
cancelled=0
for _ in {1..50}; do
    cancelled=$((cancelled + $(cancel_waits)))
    sleep 0.1
done
ok "commits were cancelled: $cancelled" test "$cancelled" -ge 20
server_crash "$primary"
start_standby
promote
load_goes_on "after the promotion locks are granted again"
load_end "waiting commits are cancelled" "waiters get their turns in the order of the queue"
done_testing
