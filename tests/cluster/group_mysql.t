#!/usr/bin/env bash
# Three members of MySQL Group Replication: killed, frozen, cut off, without a majority; with one primary that is
# switched, and with three.
. "$(dirname "$0")/nodes.sh"

cluster_is group
word=member

all_together() {
    local number
    for number in 1 2 3; do
        says "$number" "SELECT COUNT(*) FROM performance_schema.replication_group_members
            WHERE member_state = 'ONLINE'" 3 || return 1
    done
}
primary() {
    node sql "$1" "SELECT RIGHT(member_host, 1) FROM performance_schema.replication_group_members
        WHERE member_role = 'PRIMARY'"
}
is_primary() { [ "$(primary "$1")" = "$1" ]; }

switch_to() { node sql "$1" "SELECT group_replication_set_as_primary(@@server_uuid)" >/dev/null; }

# Clients reach the member, but the other members do not.
cut_off() {
    node cut 1
    load_mark cut_off
    sleep $OUTAGE_S
    load_goes_on "$what: locks are granted again"
    heal
    load_goes_on "$what: all go on with the member back"
}

switched() {
    local number
    for number in 2 3 1; do
        load_mark "switch_to_$number"
        switch_to "$number"
        load_survives "$what: locks are granted by member $number" switched
    done
}

# A member that starts again must have the group's mode.
single_primary() {
    local dir
    for dir in $ROWLOCK_TEST_NODE_DIRS; do sed -i 's/\(single-primary-mode\)=OFF/\1=ON/' "$dir/argv"; done
    node sql 1 "SELECT group_replication_switch_to_single_primary_mode(@@server_uuid)" >/dev/null
    ok "one member is the primary" until_true 30 is_primary 1
}

# Before each fault it is member 1.
primary_is() {
    switch_to 1
    ok "$1: member 1 is the primary" until_true 30 is_primary 1
    under_load "$@"
}

LOAD_URLS="$(hosts 1 2 3) $(hosts 2 3 1)"
LOAD_INSTALL_URL=${nodes[0]}
export LOAD_URLS LOAD_INSTALL_URL
load_install

# A member that lags behind, or has slept, does not know the newest grants. With another setting it tells their
# holders LOST.
for number in 1 2 3; do
    node sql "$number" "SET GLOBAL group_replication_consistency = 'BEFORE'"
    echo --loose-group-replication-consistency=BEFORE >>"$(cut -d ' ' -f "$number" <<<"$ROWLOCK_TEST_NODE_DIRS")/argv"
done

under_load "two writers, one is killed" killed
under_load "two writers, one is frozen" frozen
under_load "two writers, one is cut off" cut_off
LOAD_URLS=$(hosts 1 2 3)
single_primary
primary_is "the primary is killed" killed
primary_is "the primary is frozen" frozen
primary_is "the primary is cut off from the others" cut_off
primary_is "the primary is switched" switched
# They stay in the group if it does not last longer than a few seconds.
primary_is "no majority" apart
done_testing
