#!/usr/bin/env bash
# Three nodes of Patroni with synchronous replication, strict. A fifth of the clients each: all hosts, HAProxy with
# quick checks, HAProxy with the checks of Patroni's sample, pgbouncer before the quick checks, a name that moves with
# the leader. Needs tests/more/ha/with-patroni.sh. With etcd's API 3, Patroni 3.0.2 itself goes wrong (its pull request
# 2689). ROWLOCK_TEST_FAILOVERS: how often one leader after the other dies.
. "$(dirname "$0")/nodes.sh"

cluster_is patroni
first=

ctl() { tests/more/ha/patroni-ctl.sh "$@" 3>&- 4>&- 5>&-; }

url() { echo "postgresql://postgres@$1/postgres${2:-}"; }

# fails_over FAULT…: of the leader, whose number is $first. Returns when another leads and locks are granted.
fails_over() {
    first=$(ctl leader)
    "$@"
    load_mark "${1}_${2:-}"
    ok "$what: another node is promoted" ctl led-by-other "$first"
    load_mark promoted
    ok "$what: its commits return" ctl commits
    load_survives "$what: locks are granted again" commits
}

mended() {
    local endpoint
    "$@"
    ok "$what: all nodes are together again" ctl whole
    for endpoint in $LOAD_URLS; do
        ok "$what: $endpoint grants" until_true "$command" --url "$endpoint" run -w 5s probe -- true
    done
    load_survives "$what: all go on" whole
}

of_leader() { ctl "$@" "$first"; }

node_dies() {
    fails_over of_leader down
    mended of_leader up
}

again_and_again() {
    local turn
    for ((turn = 0; turn < ${ROWLOCK_TEST_FAILOVERS:-4}; turn++)); do node_dies; done
}

server_dies() {
    first=$(ctl leader)
    of_leader kill postgres
    load_mark killed
    mended true
}

server_freezes() {
    fails_over of_leader freeze postgres
    mended of_leader thaw postgres
}

agent_freezes() {
    fails_over of_leader freeze agent
    mended of_leader thaw agent
}

agent_dies() {
    fails_over of_leader kill agent
    mended of_leader start agent
}

is_cut_off() {
    fails_over of_leader cut
    mended ctl heal
}

is_unplugged() {
    fails_over of_leader unplug
    mended ctl heal
}

is_switched() {
    fails_over of_leader switch
    mended true
}

store_dies() {
    first=$(ctl leader)
    of_leader kill etcd
    load_survives "$what: all go on with two members of etcd" store_killed
    mended of_leader start etcd
}

proxy_dies() {
    ctl kill proxy
    load_survives "$what: those with all hosts go on" proxy_killed
    mended ctl start proxy
}

# No client reaches the leader, and no node misses it.
is_hidden() {
    first=$(ctl leader)
    of_leader hide
    load_outage
    mended ctl heal
    is "$what: no other node is promoted" "$(ctl leader)" "$first"
}

bouncer_fails() {
    ctl "$1" bouncer
    load_mark "$1"
    sleep $OUTAGE_S
    load_goes_on "$what: the others go on"
    mended ctl "$2" bouncer
}
bouncer_dies() { bouncer_fails kill start; }
bouncer_freezes() { bouncer_fails freeze thaw; }

is_cut() { printf 'SELECT 1;\n\\! sleep 4\nSELECT 1;' | "$PGBIN/psql" -X "$LOAD_URLS" 2>&1 | grep closed; }
idles() {
    ok "$what: a session of psql is cut" until_true is_cut
    load_goes_on "$what: all go on" 500
}

LOAD_URLS="$(url "$PATRONI_HOSTS") $(url "$PATRONI_QUICK") $(url "$PATRONI_SAMPLE") $(url "$PATRONI_BOUNCER")"
LOAD_URLS+=" $(url "$PATRONI_NAMED")"
LOAD_INSTALL_URL=$(url "$PATRONI_QUICK")
export LOAD_URLS LOAD_INSTALL_URL
load_install

if [[ "$PATRONI_API $(patroni --version)" == "etcd3 patroni 3.0."[0-2] ]]; then
    # The leader that takes its key back has not changed its role, so the name stays with the other one.
    LOAD_URLS=${LOAD_URLS% *}
    breaks "the leader's server is frozen, etcd's API 3" server_freezes "no token is granted twice"
    done_testing
    exit
fi
while read -r fault name; do
    [ "$fault" != idles ] || LOAD_URLS=$(url "$PATRONI_BRIEF")
    case $name in *"${ROWLOCK_TEST_FAULTS:-}"*) under_load "$name" "$fault" ;; esac
done <<'FAULTS'
node_dies the leader's node dies
server_dies the leader's server dies alone
server_freezes the leader's server is frozen
agent_freezes the leader's agent is frozen
agent_dies the leader's agent dies
is_cut_off the leader is cut off from the other nodes
is_unplugged the leader is unplugged
is_switched the leader is switched
is_switched it is switched again
store_dies a member of etcd dies
proxy_dies the proxy dies
is_hidden only the clients lose the leader
bouncer_dies pgbouncer dies
bouncer_freezes pgbouncer is frozen
again_and_again one leader after the other dies
idles the proxy cuts idle connections
FAULTS
done_testing
