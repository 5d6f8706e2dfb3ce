#!/usr/bin/env bash
# The connection of a keeper sleeps while the primary of PostgreSQL is frozen and its standby promoted. The old
# primary wakes up, and does not know what the new one has granted. That is no reason to call it LOST.
. "$(dirname "$0")/postgres.sh"

make_pair sync
mkfifo "$work/line"
exec 7<>"$work/line"
PYTHONPATH="${ROWLOCK_TEST_BUILD:-build}/python/site" "${PYTHON:-/usr/bin/python3}" tests/cluster/idle_keeper.py \
    "$LOAD_URLS" <"$work/line" >"$work/said" 2>"$work/err" 3>&- 4>&- 5>&- &
keeper=$!
trap 'kill $keeper; clean_up' EXIT
said() { grep -q "$1" "$work/said"; }
asked_in_vain() {
    [ "$(postgres_shell "$primary" "SELECT COUNT(*) FROM pg_stat_activity
        WHERE wait_event = 'SyncRep' AND query LIKE '%rowlock:verify%'")" = 1 ]
}
renewed() { [ "$(postgres_shell "$standby" "SELECT renewals > 0 FROM rowlock_locks WHERE name = 'kept'")" = t ]; }

ok "a keeper is connected" until_true 60 said connected
server_freeze "$primary"
ok "the standby is promoted" postgres_promote "$standby"
echo >&7
ok "it grants a lock" until_true 60 said granted
server_thaw "$primary"
ok "the keeper asks the old primary, which has to prove its answer" until_true 60 asked_in_vain
server_crash "$primary"
ok "it renews by the new one" until_true 60 renewed
echo >&7
ok "and the lock was never lost: $(cat "$work/err")" until_true 60 said released
done_testing
