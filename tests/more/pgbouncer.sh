# shellcheck shell=bash
# pgbouncer as a server of tests/lib/server.sh; sourced by with-pgbouncer.sh and tests/cluster/.
#
#     pgbouncer_make DIR PORT SERVER_PORT MODE POOL      MODE: transaction or session

pgbouncer_make() {
    local dir=$1 port=$2 server=$3 mode=$4 pool=$5
    echo "$port" >"$dir/port"
    cat >"$dir/pgbouncer.ini" <<INI
[databases]
* = host=127.0.0.1 port=$server user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir = $dir
auth_type = any
pool_mode = $mode
default_pool_size = $pool
max_client_conn = 300
ignore_startup_parameters = extra_float_digits
INI
    own_by_server "$dir/pgbouncer.ini"
    printf '%s\n' "$(command -v pgbouncer)" "$dir/pgbouncer.ini" >"$dir/argv"
}

pgbouncer_answers() { [ -S "$1/.s.PGSQL.$(cat "$1/port")" ]; }
pgbouncer_stop() { server_stop "$1" INT; }
