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
# shellcheck source=tests/cli/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
# shellcheck source=tests/lib/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"
# shellcheck source=tests/cluster/load.sh
. "$(dirname "${BASH_SOURCE[0]}")/load.sh"

# Longer than a lease of the load.
# shellcheck disable=SC2034 # read by the tests
OUTAGE_S=7
what=

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
