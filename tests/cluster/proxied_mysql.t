#!/usr/bin/env bash
# HAProxy before three nodes of Galera, or before a group of MySQL with one primary. Needs tests/more/ha/with-haproxy.sh.
# Clients of the endpoint with one writer, and of Galera also of the one that shares them out.
. "$(dirname "$0")/nodes.sh"

cluster_is "${ROWLOCK_TEST_PROXIES:+${ROWLOCK_TEST_CLUSTER:-}}"
read -r one all <<<"$ROWLOCK_TEST_PROXIES"
word=node

all_together() {
    local number
    for number in 1 2 3; do
        if [ "$ROWLOCK_TEST_CLUSTER" = galera ]; then
            says "$number" "SHOW STATUS LIKE 'wsrep_cluster_size'" $'wsrep_cluster_size\t3' &&
                says "$number" "SHOW STATUS LIKE 'wsrep_ready'" $'wsrep_ready\tON' || return 1
        else
            says "$number" "SELECT COUNT(*) FROM performance_schema.replication_group_members
                WHERE member_state = 'ONLINE'" 3 || return 1
        fi
    done
}

proxy_dies() {
    server_crash "$ROWLOCK_TEST_PROXY_DIR"
    load_mark proxy_killed
    sleep $OUTAGE_S
    SERVER_DEATH_SIGNAL=KILL server_start proxy "$ROWLOCK_TEST_PROXY_DIR"
    load_mark proxy_back
    load_goes_on "$what: all go on"
}
proxy_answers() { (exec 6<>/dev/tcp/10.77.0.254/6001) 2>/dev/null; }

switched() {
    local number
    for number in 2 3 1; do
        load_mark "switch_to_$number"
        node sql "$number" "SELECT group_replication_set_as_primary(@@server_uuid)" >/dev/null
        load_mark switched
        load_goes_on "$what: locks are granted by member $number"
    done
}

LOAD_INSTALL_URL=${nodes[0]}
LOAD_URLS=$one
export LOAD_URLS LOAD_INSTALL_URL
load_install
if [ "$ROWLOCK_TEST_CLUSTER" = galera ]; then
    LOAD_URLS="$one $all"
    for number in 1 2 3; do node sql "$number" "SET GLOBAL wsrep_sync_wait = 1"; done
else
    node sql 1 "SELECT group_replication_switch_to_single_primary_mode(@@server_uuid)" >/dev/null
    for dir in $ROWLOCK_TEST_NODE_DIRS; do sed -i 's/\(single-primary-mode\)=OFF/\1=ON/' "$dir/argv"; done
    for number in 1 2 3; do node sql "$number" "SET GLOBAL group_replication_consistency = 'BEFORE'"; done
    under_load "the primary is switched behind the proxy" switched
fi
while read -r fault name; do
    case $name in *"${ROWLOCK_TEST_FAULTS:-}"*) under_load "$name" "$fault" ;; esac
done <<'FAULTS'
killed a node dies behind the proxy
frozen a node is frozen behind the proxy
apart no majority behind the proxy
proxy_dies the proxy dies
FAULTS
done_testing
