#!/usr/bin/env bash
# A proxy (tests/more/ha/with-haproxy.sh or with-router.sh) before three nodes of Galera, or before a group of MySQL
# with one primary. Clients share out its endpoints.
. "$(dirname "$0")/nodes.sh"

cluster_is "${ROWLOCK_TEST_PROXIES:+${ROWLOCK_TEST_CLUSTER:-}}"

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
    load_survives "$what: all go on" proxy_back
}
proxy_answers() { (exec 6<>/dev/tcp/10.77.0.254/6001) 2>/dev/null; }

# leads N: it is the primary, and has the name. ready: the proxy knows it too, and cuts no client that begins. A reader
# of the name may come at any time, so the file is never empty.
leads() { node sql "$1" "${lead:-DO 0}" >/dev/null && echo "10.77.0.$1 primary" 1<>"$ROWLOCK_TEST_PROXY_DIR/hosts"; }
ready() { leads 1 && for url in $LOAD_URLS; do "$command" --url "$url" run -n ready -- true || return; done; }

switched() {
    local number
    for number in 2 3 1; do
        leads "$number"
        load_survives "$what: locks are granted by node $number" switched
    done
}

name_moves() {
    switched
    node crash 1
    ok "$what: another node gets the name" until_true leads 2
    load_mark moved
    comes_back 1
}

# A call that waits for longer than the proxy does may lose its answer. No other may.
idle() {
    load_goes_on "$what: all go on" 500
    ok "$what: some were cut" until_true grep -q ' [cs]D ' "$ROWLOCK_TEST_PROXY_DIR/log"
    ok "$what: no other fails" \
        awk '/^C (acquire|release|transfer|write) ROWLOCK_E/ && $4 < 2000 { exit 1 }' "$load_folder/history"
}

LOAD_INSTALL_URL=${nodes[0]}
LOAD_URLS=$ROWLOCK_TEST_PROXIES
export LOAD_URLS LOAD_INSTALL_URL LOAD_TICKET_MS=80000
load_install
if [ "$ROWLOCK_TEST_CLUSTER" = galera ]; then
    for dir in $ROWLOCK_TEST_NODE_DIRS; do echo --wsrep-sync-wait=1 >>"$dir/argv"; done
    for number in 1 2 3; do node sql "$number" "SET GLOBAL wsrep_sync_wait = 1"; done
else
    lead="SELECT group_replication_set_as_primary(@@server_uuid)"
    node sql 1 "SELECT group_replication_switch_to_single_primary_mode(@@server_uuid)" >/dev/null
    options=$(printf -- '--loose-group-replication-%s\n' single-primary-mode=ON consistency=BEFORE)
    for dir in $ROWLOCK_TEST_NODE_DIRS; do echo "$options" >>"$dir/argv"; done
    for number in 1 2 3; do node sql "$number" "SET GLOBAL group_replication_consistency = 'BEFORE'"; done
    until_true ready
    under_load "the primary is switched behind the proxy" switched
fi
while read -r fault urls name; do
    LOAD_URLS=${!urls:-}
    [[ -n $LOAD_URLS && $name == *"${ROWLOCK_TEST_FAULTS:-}"* ]] || continue
    until_true ready
    under_load "$name" "$fault"
done <<'FAULTS'
idle ROWLOCK_TEST_IDLE the proxy cuts idle connections
name_moves ROWLOCK_TEST_NAME the name moves
killed ROWLOCK_TEST_PROXIES a node dies behind the proxy
frozen ROWLOCK_TEST_PROXIES a node is frozen behind the proxy
apart ROWLOCK_TEST_PROXIES no majority behind the proxy
proxy_dies ROWLOCK_TEST_PROXIES the proxy dies
FAULTS
done_testing
