#!/usr/bin/env bash
# Three nodes of Galera: killed, frozen, cut off, without quorum, joining by a state transfer; one writer, two
# writers, three writers.
set -u
# shellcheck source=tests/cluster/nodes.sh
. "$(dirname "$0")/nodes.sh"

cluster_is galera

size_is() { says "$1" "SELECT variable_value FROM information_schema.global_status
    WHERE variable_name = 'wsrep_cluster_size' AND EXISTS (SELECT * FROM information_schema.global_status
    WHERE variable_name = 'wsrep_local_state_comment' AND variable_value = 'Synced')" "$2"; }
whole() { ok "$1: all nodes are together again" until_true 60 all_synced; }
all_synced() { size_is 1 3 && size_is 2 3 && size_is 3 3; }

comes_back() {
    node start "$1"
    whole "$2"
    load_mark "node_$1_back"
    load_goes_on "$2: all go on with the node back"
}

killed() {
    node crash 1
    load_mark killed
    load_goes_on "$what: locks are granted again"
    comes_back 1 "$what"
}

frozen() {
    node freeze 1
    load_mark frozen
    sleep $OUTAGE_S
    load_goes_on "$what: locks are granted again"
    node thaw 1
    load_mark thawed
    load_goes_on "$what: and when it wakes up"
    whole "$what"
    load_goes_on "$what: and when it has joined"
}

# Clients reach the node, but the other nodes do not. Seldom the other two find no quorum until the network is whole.
cut_off() {
    node cut 1
    load_mark cut_off
    sleep $OUTAGE_S
    node heal
    load_mark healed
    whole "$what"
    load_goes_on "$what: all go on with the node back"
}

unplugged() {
    node unplug 1
    load_mark unplugged
    sleep $OUTAGE_S
    load_goes_on "$what: locks are granted again"
    node heal
    load_mark healed
    whole "$what"
    load_goes_on "$what: all go on with the node back"
}

# Each node is alone.
no_quorum() {
    node cut 1
    node cut 2
    load_mark cut
    sleep $OUTAGE_S
    load_mark back
    node heal
    load_mark healed
    whole "$what"
    load_goes_on "$what: locks are granted again"
}

# The node has lost all that it had. Another one copies its files to it, and takes no commits meanwhile.
state_transfer() {
    local before
    before=$(copies)
    node crash 3
    node forget 3
    load_mark killed
    load_goes_on "$what: locks are granted"
    node start 3
    whole "$what"
    load_mark transferred
    load_goes_on "$what: all go on with the node back"
    is "$what: it was copied" "$(copies)" $((before + 1))
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
under_load "no quorum" no_quorum
under_load "a state transfer" state_transfer
LOAD_URLS="$(hosts 1 2 3) $(hosts 2 3 1)"
under_load "two writers, one is killed" killed
under_load "two writers, one is frozen" frozen
under_load "two writers, one is cut off" cut_off
under_load "two writers, no quorum" no_quorum
done_testing
