#!/usr/bin/env bash
# Three nodes of Galera: killed, killed all at once, frozen, cut off, without quorum, joining by a state transfer; one writer, two
# writers, three writers.
. "$(dirname "$0")/nodes.sh"

cluster_is galera

size_is() { says "$1" "SELECT variable_value FROM information_schema.global_status
    WHERE variable_name = 'wsrep_cluster_size' AND EXISTS (SELECT * FROM information_schema.global_status
    WHERE variable_name = 'wsrep_local_state_comment' AND variable_value = 'Synced')" "$2"; }
all_together() { size_is 1 3 && size_is 2 3 && size_is 3 3; }

# Clients reach the node, but the other nodes do not. Seldom the other two find no quorum until the network is whole.
cut_off() {
    node cut 1
    load_mark cut_off
    sleep $OUTAGE_S
    heal
    load_goes_on "$what: all go on with the node back"
}

unplugged() {
    node unplug 1
    load_mark unplugged
    sleep $OUTAGE_S
    load_goes_on "$what: locks are granted again"
    heal
    load_goes_on "$what: all go on with the node back"
}

# The node has lost all that it had. Another one copies its files to it, and takes no commits meanwhile.
state_transfer() {
    local before
    before=$(copies)
    node crash 3
    node forget 3
    load_survives "$what: locks are granted" killed
    node start 3
    whole
    load_survives "$what: all go on with the node back" transferred
    is "$what: it was copied" "$(copies)" $((before + 1))
}

# As the manual of Galera says: the node with the last transaction makes a new cluster.
all_killed() {
    local number position last=0 first=
    for number in 1 2 3; do node crash "$number" & done
    for number in $(jobs -p); do [ "$number" = "$load_pid" ] || wait "$number"; done
    load_outage
    for number in 1 2 3; do
        position=$(node position "$number")
        if [ "${position:-0}" -gt "$last" ]; then last=$position first=$number; fi
    done
    ok "$what: a node tells its last transaction" test -n "$first"
    tap_note "node $first begins: it has the transactions up to $last"
    node bootstrap "${first:-1}"
    for number in 1 2 3; do [ "$number" = "${first:-1}" ] || node start "$number"; done
    whole
    load_survives "$what: locks are granted again" all_back
}

copies() { grep -c 'rsync SST started on joiner' "$(dir 3)/log"; }
dir() { cut -d ' ' -f "$1" <<<"$ROWLOCK_TEST_NODE_DIRS"; }

LOAD_URLS=$(hosts 1 2 3)
LOAD_INSTALL_URL=${nodes[0]}
export LOAD_URLS LOAD_INSTALL_URL
load_install
under_load "the writer is killed" killed
under_load "the writer is frozen" frozen
under_load "the writer is cut off from the others" cut_off
under_load "the writer is unplugged" unplugged
under_load "no quorum" apart
under_load "a state transfer" state_transfer
under_load "all nodes are killed" all_killed
LOAD_URLS="$(hosts 1 2 3) $(hosts 2 3 1)"
under_load "two writers, one is killed" killed
under_load "two writers, one is frozen" frozen
under_load "two writers, one is cut off" cut_off
under_load "two writers, no quorum" apart
under_load "two writers, all nodes are killed" all_killed
done_testing
