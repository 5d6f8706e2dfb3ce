# shellcheck shell=bash
# The nodes of a cluster under a load; sourced by tests/cluster/*.t of Galera, Group Replication and replicas.
#
#     cluster_is KIND           skips the script if tests/more/with-*.sh has not started that kind
#     node COMMAND…             tests/more/node-ctl.sh
#     hosts N…                  a URL with these nodes, in this order
#     says N SQL ANSWER         node N gives this answer
#     under_load NAME FUNCTION [--may-lose]
#                               a load, and what FUNCTION does meanwhile; then the judge. Sets $what to NAME
#     breaks NAME FUNCTION SENTENCE
#                               the same, and the judge must find that SENTENCE does not hold
#
# Faults for under_load. They call all_together, the test's own, and say $word: node or member.
#
#     killed                    node 1 dies, and comes back
#     frozen                    node 1 stands still, wakes up and joins
#     apart                     each node is alone
#     whole                     passes when all_together does
#     heal                      ends all that `node` has cut or unplugged
#
. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"
. "$(dirname "${BASH_SOURCE[0]}")/load.sh"

what=
word=node

cluster_is() {
    [ "${ROWLOCK_TEST_CLUSTER:-}" = "$1" ] || skip_all "no cluster of this kind: see tests/more/run.sh"
    read -ra nodes <<<"$ROWLOCK_TEST_NODES"
    trap 'exit 1' INT TERM HUP
}

node() { tests/more/node-ctl.sh "$@" 3>&- 4>&- 5>&-; }

hosts() {
    local number list='' url
    for number in "$@"; do
        url=${nodes[number - 1]#*@}
        list+=${list:+,}${url%/*}
    done
    echo "${nodes[0]%@*}@$list/${nodes[0]##*/}"
}

says() { [ "$(node sql "$1" "$2")" = "$3" ]; }

begin_load() {
    what=$1
    echo "# $what"
    load_begin "${what//[ ,]/_}"
    load_goes_on "$what: locks are granted"
}

under_load() {
    begin_load "$1"
    "$2"
    load_end "$what" "${@:3}"
}

breaks() {
    begin_load "$1"
    "$2"
    load_breaks "$what: it is not so that $3" "$3"
}

whole() { ok "$what: all ${word}s are together again" until_true 60 all_together; }

heal() { node heal; load_mark healed; whole; }

comes_back() {
    node start "$1"
    whole
    load_survives "$what: all go on with the $word back" "${word}_back"
}

killed() {
    node crash 1
    load_survives "$what: locks are granted again" killed
    comes_back 1
}

frozen() {
    node freeze 1
    load_mark frozen
    sleep $OUTAGE_S
    load_goes_on "$what: locks are granted again"
    node thaw 1
    load_survives "$what: and when it wakes up" thawed
    whole
    load_goes_on "$what: and when it has joined"
}

apart() {
    node cut 1
    node cut 2
    load_outage
    heal
    load_goes_on "$what: locks are granted again"
}
