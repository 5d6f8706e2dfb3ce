#!/usr/bin/env bash
# pgpool-II before a primary of PostgreSQL and its synchronous standby. A third of the clients name the hosts of both
# servers. Needs tests/more/ha/with-pgpool.sh.
. "$(dirname "$0")/nodes.sh"
cluster_is pgpool
url=${nodes[0]} session="${nodes[0]}?rowlock_pooler=session"
read -r primary standby <<<"$PGPOOL_NODES"
export LOAD_INSTALL_URL=${nodes[1]} ROWLOCK_URL=${nodes[1]} LOAD_URLS="$url $session ${nodes[1]}"

pgpool_answers() { postgres_shell "$1" 'SELECT 1' >/dev/null 2>&1; }
all_together() {
    [ "$(postgres_shell "$primary" 'SELECT sync_state FROM pg_stat_replication')" = sync ] &&
        [ "$(postgres_shell "$PGPOOL_DIR" 'SHOW pool_nodes' | grep -c '|up|up|')" = 2 ]
}

pool_dies() {
    kill -KILL -- "-$(cat "$PGPOOL_DIR/pid")"
    load_survives "$what: those with both hosts go on" pgpool_killed
    server_start pgpool "$PGPOOL_DIR"
    load_goes_on "$what: all go on"
}

standby_dies() {
    server_crash "$standby"
    load_outage
    server_start postgres "$standby"
    whole
    load_goes_on "$what: locks are granted again"
}

# The old primary begins anew as the standby.
primary_freezes() {
    server_freeze "$primary"
    load_survives "$what: locks are granted again" frozen
    server_thaw "$primary"
    load_survives "$what: all go on when it wakes up" thawed
    server_crash "$primary"
    rm -rf "$primary/data"
    postgres_copy "$standby" "$primary" "$(cat "$primary/port")" s0 -c fsync=off
    read -r standby primary <<<"$PGPOOL_NODES"
    server_start postgres "$standby"
    postgres_shell "$primary" "ALTER SYSTEM SET synchronous_standby_names = s0"
    postgres_shell "$primary" "SELECT pg_reload_conf()" >/dev/null
    whole
}

primary_dies() {
    server_crash "$primary"
    load_survives "$what: locks are granted again" killed
}

load_install
prints "pgpool is taken for a pooler" 0 "one is in between" check --url "$url"
prints "if the URL does not say session" 0 "none seen" check --url "$session"
until_true postgres_shell "$standby" 'SELECT pg_wal_replay_pause() FROM (SELECT COUNT(*) FROM rowlock_locks) t'
until_true postgres_shell "$standby" "SELECT 1 / (pg_get_wal_replay_pause_state() = 'paused')::int"
exits "the standby is behind" 0 acquire --owner me --url "$session" new
is "a program's reads go to it" "$(postgres_shell "$PGPOOL_DIR" "SELECT COUNT(*) FROM rowlock_locks")" 0
prints "rowlock's do not" 0 new list --names --url "$url"
start run --url "$url" crowd -- sh -c "until [ -e '$work/go' ]; do sleep 0.1; done"
until_true renewed crowd -1
for i in {1..28}; do as=$i start acquire -s -w 10m --owner "$i" --url "$session" crowd; done
ok "a holder and 28 waiters have all 30 children of pgpool" until_true queued crowd 28
errs "the next client gets no connection" 69 "before the connect timeout" list --url "$url"
touch "$work/go"
ok "the holder can release it to each waiter" until_true json_is "scalar grep { \$_->{name} eq 'crowd' } @\$d" 28 list

# The load has more connections.
echo "num_init_children = 80" >>"$PGPOOL_DIR/pgpool.conf"
kill -KILL -- "-$(cat "$PGPOOL_DIR/pid")"
server_start pgpool "$PGPOOL_DIR"
under_load "pgpool dies" pool_dies
under_load "the standby dies" standby_dies
under_load "the primary is frozen" primary_freezes
under_load "the primary dies" primary_dies
done_testing
