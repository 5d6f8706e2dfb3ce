# shellcheck shell=bash
# Functions that run throw-away servers of the peers. Sourced by the scripts beside it. They extend
# tests/lib/server.sh: a server NAME has the folder $ROWLOCK_PEERS_DIR/NAME.

. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"

# What is started, the command that it needs, and the Debian package that has the command.
peer_servers() {
    cat <<'LIST'
redis-none redis-server redis-server
redis-everysec redis-server redis-server
redis-always redis-server redis-server
etcd etcd etcd-server
zookeeper java zookeeper
memcached memcached memcached
LIST
}

# kind_of NAME: which functions below are for this server.
kind_of() { echo "${1%%-*}"; }

# line_of PORT REQUEST: sends it, and prints the first line of the answer.
line_of() {
    local line
    (
        exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
        printf '%b' "$2" >&3
        IFS= read -r -t 2 line <&3
        printf '%s\n' "$line"
    ) 2>/dev/null
}

# peer_make NAME DIR PORT
peer_make() {
    (as_server mkdir -p "$2/data") && echo "$3" >"$2/port" && "$(kind_of "$1")_make" "$@"
}

# --- Redis: the name says how often it flushes its log.

redis_make() {
    local log=(--appendonly yes --appendfsync "${1#redis-}")
    [ "$1" != redis-none ] || log=(--appendonly no)
    printf '%s\n' "$(command -v redis-server)" --port "$3" --bind 127.0.0.1 --dir "$2/data" \
        --save '' "${log[@]}" --loglevel warning >"$2/argv"
}

redis_answers() { [[ $(line_of "$(cat "$1/port")" 'PING\r\n') == +PONG* ]]; }

# --- etcd: one node. It flushes each change.

etcd_make() {
    local client=http://127.0.0.1:$3 peer
    peer=http://127.0.0.1:$(free_port)
    printf '%s\n' "$(command -v etcd)" --name peer --data-dir "$2/data" --logger zap --log-level error \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
        --initial-cluster "peer=$peer" >"$2/argv"
}

etcd_answers() {
    [[ $(line_of "$(cat "$1/port")" 'GET /health HTTP/1.0\r\n\r\n') == *" 200 "* ]]
}

# --- ZooKeeper: one node. It flushes each change (forceSync).

ZOOKEEPER_JAR=${ZOOKEEPER_JAR:-/usr/share/java/zookeeper.jar}

zookeeper_make() {
    cat >"$2/zoo.cfg" <<CFG
tickTime=2000
dataDir=$2/data
clientPort=$3
clientPortAddress=127.0.0.1
maxClientCnxns=0
maxSessionTimeout=60000
forceSync=yes
admin.enableServer=false
4lw.commands.whitelist=srvr
CFG
    printf '%s\n' "$(command -v java)" -Xmx512m -Dlog4j.rootLogger=ERROR \
        -cp "$ZOOKEEPER_JAR" org.apache.zookeeper.server.quorum.QuorumPeerMain "$2/zoo.cfg" \
        >"$2/argv"
}

zookeeper_answers() { [[ $(line_of "$(cat "$1/port")" srvr) == Zookeeper* ]]; }

# --- memcached

memcached_make() {
    printf '%s\n' "$(command -v memcached)" -l 127.0.0.1 -p "$3" -U 0 -c 4000 -m 64 >"$2/argv"
}

memcached_answers() { [[ $(line_of "$(cat "$1/port")" 'version\r\n') == VERSION* ]]; }
