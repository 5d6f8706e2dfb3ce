# shellcheck shell=bash
# The nodes of a cluster under a load; sourced by tests/cluster/*.t of Galera, Group Replication and replicas.
#
#     cluster_is KIND           skips the script if tests/more/with-*.sh has not started that kind
#     node COMMAND…             tests/more/node-ctl.sh
#     hosts N…                  a URL with these nodes, in this order
#     says N SQL ANSWER         node N gives this answer
#     under_load NAME FUNCTION  a load, and what FUNCTION does meanwhile; then the judge
#
# shellcheck source=tests/cli/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
# shellcheck source=tests/lib/server.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"
# shellcheck source=tests/cluster/load.sh
. "$(dirname "${BASH_SOURCE[0]}")/load.sh"

# Longer than a lease of the load.
OUTAGE_S=7

cluster_is() {
    [ "${ROWLOCK_TEST_CLUSTER:-}" = "$1" ] || skip_all "no cluster of this kind: see tests/more/run.sh"
    read -ra nodes <<<"$ROWLOCK_TEST_NODES"
    trap 'exit 1' INT TERM HUP
}

node() { tests/more/node-ctl.sh "$@" 3>&- 4>&- 5>&-; }

hosts() {
    local number list='' url=${nodes[0]}
    for number in "$@"; do
        list+=${list:+,}$(sed 's|.*@\(.*\)/.*|\1|' <<<"${nodes[number - 1]}")
    done
    echo "${url%@*}@$list/${url##*/}"
}

says() { [ "$(node sql "$1" "$2")" = "$3" ]; }

under_load() {
    echo "# $1"
    load_begin "${1// /_}"
    load_goes_on "$1: locks are granted"
    "$2"
    load_end "$1" "${@:3}"
}
