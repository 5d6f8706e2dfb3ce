#!/usr/bin/env bash
# Runs a command beside pgpool-II before a primary of PostgreSQL and its synchronous standby. pgpool promotes the
# standby, and sends it each read that it may. COMMAND finds the folders of the servers in PGPOOL_NODES, pgpool's in
# PGPOOL_DIR, and in ROWLOCK_TEST_NODES pgpool's URL and one with the hosts of both servers.
# usage: with-pgpool.sh COMMAND…     PGBIN: the folder of PostgreSQL's programs
set -euo pipefail
. "$(dirname "$0")/../../lib/server.sh"
[ $# -gt 0 ] || fail "which command?"
find_pgbin
pool=$(new_server_dir pgpool) a=$(new_server_dir a) b=$(new_server_dir b)
stop_all() {
    trap '' INT TERM HUP
    [ ! -s "$pool/pid" ] || kill -KILL -- "-$(cat "$pool/pid")" 2>/dev/null || true
    for dir in "$a" "$b"; do postgres_stop "$dir"; done
    [ -z "${PGPOOL_KEEP:-}" ] || cp -r "$pool" "$PGPOOL_KEEP"
    rm -rf "$pool" "$a" "$b"
}
trap stop_all EXIT
trap 'exit 143' INT TERM HUP

# A busy machine must not look like a frozen server.
pgpool_make() {
    printf '%s\n' "$(command -v pgpool)" -n -f "$pool/pgpool.conf" -F /dev/null >"$pool/argv"
    echo "$1" >"$pool/port"
    printf "%s = '%s'\n" >"$pool/pgpool.conf" backend_clustering_mode streaming_replication load_balance_mode on \
        port "$1" pcp_port "$(free_port)" socket_dir "$pool" pcp_socket_dir "$pool" logdir "$pool" \
        pid_file_name "$pool/pgpool.pid" num_init_children 30 sr_check_user postgres health_check_user postgres \
        health_check_period 1 health_check_timeout 10 health_check_max_retries 1 failover_on_backend_shutdown off \
        failover_on_backend_error off failover_command "$PGBIN/pg_ctl -D %R -w promote" auto_failback on \
        auto_failback_interval 1 backend_weight0 0 backend_application_name0 s0 backend_application_name1 s1 \
        backend_hostname0 127.0.0.1 backend_port0 "$(cat "$a/port")" backend_data_directory0 "$a/data" \
        backend_hostname1 127.0.0.1 backend_port1 "$(cat "$b/port")" backend_data_directory1 "$b/data" backend_weight1 1
}
pgpool_answers() { [ -S "$1/.s.PGSQL.$(cat "$1/port")" ]; }
export PGBIN PGPOOL_DIR=$pool PGPOOL_NODES="$a $b" ROWLOCK_TEST_NODES ROWLOCK_TEST_CLUSTER=pgpool
start_somewhere postgres "$a" postgres_make "$a" PORT -c fsync=off -c synchronous_standby_names=s1
start_somewhere postgres "$b" postgres_copy "$a" "$b" PORT s1 -c fsync=off
start_somewhere pgpool "$pool" pgpool_make PORT
export SERVER_DEATH_SIGNAL=QUIT at=postgresql://postgres@127.0.0.1
ROWLOCK_TEST_NODES="$at:$(cat "$pool/port")/postgres $at:$(cat "$a/port"),127.0.0.1:$(cat "$b/port")/postgres"
"$@"
