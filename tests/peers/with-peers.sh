#!/usr/bin/env bash
# Runs a command with private servers of the peers, which end with the command. Their data is on a
# disk.
#
# usage: with-peers.sh COMMAND…
#   PEERS  starts only servers with one of these words in their names, or whose name begins one of
#          them (all)
#   exports ROWLOCK_PEERS_DIR: a folder for each server, with pid and port
set -euo pipefail
. "$(dirname "$0")/servers.sh"

[ $# -gt 0 ] || fail "which command?"
scratch_on_disk

# chosen NAME
chosen() {
    local word
    [ -n "${PEERS// /}" ] || return 0
    for word in ${PEERS//,/ }; do
        case $1 in *"$word"*) return 0 ;; esac
    done
    return 1
}
PEERS=${PEERS:-}

# Nothing is skipped silently: a chosen server whose program is missing ends this.
names=()
while read -r name program package; do
    chosen "$name" || continue
    command -v "$program" >/dev/null ||
        fail "$name needs $program: install $package (tools/install-deps.sh peers), or leave it out with PEERS="
    names+=("$name")
done < <(peer_servers)
case " ${names[*]} " in
    *" zookeeper "*) [ -r "$ZOOKEEPER_JAR" ] || fail "no $ZOOKEEPER_JAR: install zookeeper" ;;
esac

folder=$(new_server_dir peers)
export ROWLOCK_PEERS_DIR=$folder
stop_peers() {
    trap '' INT TERM HUP
    local name
    for name in "${names[@]}"; do
        server_stop "$folder/$name" TERM
    done
    rm -rf "$folder"
}
trap stop_peers EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

for name in "${names[@]}"; do
    (as_server mkdir -p "$folder/$name")
    SERVER_DEATH_SIGNAL=KILL start_somewhere "$(kind_of "$name")" "$folder/$name" peer_make "$name" "$folder/$name" PORT
done
"$@"
