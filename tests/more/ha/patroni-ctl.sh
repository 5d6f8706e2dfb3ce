#!/usr/bin/env bash
# What happens to the nodes that with-patroni.sh has started.
#
# usage: patroni-ctl.sh leader          the number of the node that Patroni calls the leader and that takes writes
#        patroni-ctl.sh whole           waits until there is one, and the two others follow it, one synchronously
#        patroni-ctl.sh proxied         waits until all endpoints of HAProxy lead to the leader alone
#        patroni-ctl.sh led-by-other N  waits until there is another leader than N
#        patroni-ctl.sh commits         waits until a commit on the leader returns, so a standby has it
#        patroni-ctl.sh switch N        a switchover from N, by patronictl
#        patroni-ctl.sh kill|freeze|thaw PART N
#                       PART: postgres, agent, etcd, proxy, bouncer
#        patroni-ctl.sh start PART N    an agent starts its PostgreSQL by itself
#        patroni-ctl.sh down N, up N    a whole node
#        patroni-ctl.sh cut N           no packet passes between it and the other nodes; clients reach it
#        patroni-ctl.sh unplug N        nothing reaches it
#        patroni-ctl.sh hide N          clients and HAProxy do not reach it; the other nodes do
#        patroni-ctl.sh heal            all networks are as at first
set -euo pipefail
. "$(dirname "$0")/../cluster.sh"

folder=${PATRONI_FOLDER:?}
WAIT_S=120

dir_of() { echo "$folder/node$1"; }

postmaster() { head -n 1 "$folder/node$1/data/postmaster.pid" 2>/dev/null; }

# A folder as server.sh wants it.
part_dir() {
    case $1 in
        postgres)
            mkdir -p "$folder/postgres$2"
            postmaster "$2" >"$folder/postgres$2/pid" || true
            echo "$folder/postgres$2"
            ;;
        agent) echo "$folder/node$2" ;;
        etcd) echo "$folder/etcd$2" ;;
        proxy) echo "$folder/haproxy" ;;
        bouncer) echo "$folder/pgbouncer" ;;
        *) fail "postgres, agent, etcd, proxy or bouncer?" ;;
    esac
}

# The children of an agent are its own. PostgreSQL is not among them, or goes on.
kill_part() {
    local dir pid
    dir=$(part_dir "$1" "$2")
    pid=$(cat "$dir/pid")
    [ -n "$pid" ] || return 0
    if [ "$1" = postgres ]; then server_crash "$dir"; else kill -KILL "$pid" 2>/dev/null && wait_gone 30 "$pid"; fi || true
}

freeze_part() {
    local dir
    dir=$(part_dir "$1" "$2")
    if [ "$1" = agent ]; then freeze_process "$(cat "$dir/pid")"; else server_freeze "$dir"; fi
}

thaw_part() {
    local dir
    dir=$(part_dir "$1" "$2")
    if [ "$1" = agent ]; then kill -CONT "$(cat "$dir/pid")"; else server_thaw "$dir"; fi
}

running_answers() { running "$(cat "$1/pid")"; }
start_part() { server_start running "$(part_dir "$1" "$2")"; }

each_part() { # each_part FUNCTION NUMBER
    local part
    for part in agent postgres etcd; do "$1" "$part" "$2"; done
}

says() { "$PGBIN/psql" -XqAt -h "$NETWORK.$1" -U postgres -d postgres -c "$2" 2>/dev/null; }

leader() {
    local number
    for number in "${NODES[@]}"; do
        if curl -sf -m 2 -o /dev/null "http://$NETWORK.$number:8008/primary" &&
            [ "$(PGCONNECT_TIMEOUT=2 says "$number" 'SELECT pg_is_in_recovery()')" = f ]; then
            echo "$number"
            return
        fi
    done
    return 1
}

is_whole() {
    local first
    first=$(leader) &&
        [ "$(says "$first" "SELECT COUNT(*), COUNT(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) > 0
            FROM pg_stat_replication WHERE state = 'streaming'")" = '2|t' ]
}
commits() {
    local now
    now=$(leader) && timeout 5 "$PGBIN/psql" -XqAt -h "$NETWORK.$now" -U postgres -d postgres \
        -c "SELECT pg_logical_emit_message(true, 'probe', '')" >/dev/null 2>&1
}
# At its start HAProxy takes all for leaders.
is_proxied() { [ "$(curl -sf "http://$NETWORK.254:7000/;csv" | grep -c '^[a-z]*,node.,.*,UP,')" = 3 ]; }
led_by_other() { local now; now=$(leader) && [ "$now" != "$1" ]; }

# Patroni refuses while it knows of no synchronous standby.
is_switched() {
    led_by_other "$1" ||
        patronictl -c "$folder/node$1/patroni.yml" switchover --leader "node$1" --force 2>&1 | grep -q ^Successfully
}

until_so() {
    local end=$((SECONDS + WAIT_S))
    while ! "$@"; do
        [ $SECONDS -lt $end ] || fail "$* is not so after $WAIT_S s: $(tail -n 3 "$folder"/node?/log)"
        sleep 0.05
    done
}

case ${1:-} in
    leader) leader ;;
    whole) until_so is_whole ;;
    commits) until_so commits ;;
    proxied) until_so is_proxied ;;
    led-by-other) until_so led_by_other "$2" ;;
    switch) until_so is_switched "$2" ;;
    kill | freeze | thaw | start) "${1}_part" "$2" "${3:-0}" ;;
    down) each_part kill_part "$2" ;;
    up) start_part etcd "$2" && start_part agent "$2" ;;
    cut) cut "$2" ;;
    unplug) ip link set "node$2" down ;;
    hide)
        block "$2" 254
        ip neighbour replace "$NETWORK.$2" lladdr 02:00:00:00:00:00 nud permanent dev nodes
        ;;
    heal) heal && ip neighbour flush dev nodes nud permanent ;;
    *) fail "leader, whole, proxied, led-by-other, commits, switch, kill, freeze, thaw, start, down, up, cut, unplug, hide" \
        "or heal?" ;;
esac
