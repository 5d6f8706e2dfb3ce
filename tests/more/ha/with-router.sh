#!/usr/bin/env bash
# Runs a command beside MySQL Router before the nodes of with-group.sh. Call it as the command of that.
#
# usage: with-router.sh COMMAND…        MYSQL_BASEDIR names the folder of Oracle's MySQL and MySQL Router
# Router's static routing does not know which member is the primary. COMMAND finds in ROWLOCK_TEST_PROXIES a URL with
# one endpoint for each member, and a URL of one that shares out its clients.
set -euo pipefail
. "$(dirname "$0")/../cluster.sh"

make_proxy router
port=6000 host=$NETWORK.254 url=mysql://$NODE_USER@$NETWORK.254 libs=$MYSQL_BASEDIR/lib
members=$(printf "$NETWORK.%s:$PORT " "${NODES[@]}")
{
    printf '[DEFAULT]\nlogging_folder=\nplugin_folder=%s/mysqlrouter/plugin\n' "$libs"
    for destinations in $members "$(xargs <<<"$members" | tr ' ' ,)"; do
        printf '[routing:%s]\nbind_address=%s:%s\n' $((++port)) "$host" "$port"
        printf 'routing_strategy=round-robin\nprotocol=classic\ndestinations=%s\n' "$destinations"
    done
} >"$dir/router.conf"
printf '%s\n' env "LD_LIBRARY_PATH=$libs/mysql-router:$libs/$(gcc -print-multiarch)" "$MYSQL_BASEDIR/bin/mysqlrouter" \
    -c "$dir/router.conf" >"$dir/argv"
export ROWLOCK_TEST_PROXIES="$url:6001,$host:6002,$host:6003/rowlock $url:6004/rowlock"
SERVER_DEATH_SIGNAL=KILL server_start proxy "$dir" || fail "no MySQL Router"
"$@"
