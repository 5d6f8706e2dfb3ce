# shellcheck shell=bash
# Functions that run throw-away database servers. Sourced by the scripts beside it.
#
# A server has a private folder DIR with data/, log, pid, port and argv (its command line, one word
# a line). It listens on 127.0.0.1 and on a Unix socket in DIR. Signals go only to its recorded pid.

# shellcheck source=tests/lib/scratch.sh
. "$(dirname "${BASH_SOURCE[0]}")/scratch.sh"

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# fail MESSAGE: prints it and ends the script.
fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# The account of the servers if this script runs as root: PostgreSQL and MySQL refuse to run as
# root.
server_account() {
    local name
    for name in postgres mysql nobody; do
        ! id -u "$name" >/dev/null 2>&1 || { echo "$name" && return; }
    done
    fail "no unprivileged account to run a server under"
}

# as_server COMMAND…: runs COMMAND under that account. It replaces the shell, so that the pid stays.
# Call it in a subshell or in the background. SERVER_NETWORK: a process in whose network it runs.
as_server() {
    local account enter=()
    [ -z "${SERVER_NETWORK:-}" ] || enter=(nsenter --net="/proc/$SERVER_NETWORK/ns/net" --)
    [ "$(id -u)" = 0 ] || exec "${enter[@]}" "$@"
    account=$(server_account)
    exec "${enter[@]}" setpriv --reuid="$account" --regid="$(id -g "$account")" --init-groups -- "$@"
}

# new_server_dir NAME: makes a private folder of the server's account, and prints its name.
new_server_dir() {
    local dir
    dir=$(mktemp -d "$(scratch_base)/rowlock-$1.XXXXXX") || return 1
    own_by_server "$dir"
    echo "$dir"
}

own_by_server() {
    [ "$(id -u)" != 0 ] || chown "$(server_account):" "$@"
}

# Prints a free port, below the range that the kernel gives to outgoing connections. In a run of tests
# (run-tests.sh) it prints each once, since a stopped server needs its port again.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        [ ! -d "${ROWLOCK_TEST_RUN:-}" ] || mkdir "$ROWLOCK_TEST_RUN/port-$port" 2>/dev/null || continue
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
}

# running PID: the process exists and is not a zombie.
running() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    case ${stat##*) } in Z* | X* | '') return 1 ;; esac
}

# wait_gone SECONDS PID…: true if all of them have ended in time.
wait_gone() {
    local end=$((SECONDS + $1 + 1)) pid
    shift
    for pid in "$@"; do
        while running "$pid"; do
            [ $SECONDS -lt "$end" ] || return 1
            sleep 0.01
        done
    done
}

# wait_collected PID: it is no zombie any more either. Its parent may not collect it, so the wait ends after 10 s.
wait_collected() {
    local end=$((SECONDS + 10))
    while [ -d "/proc/$1" ] && [ $SECONDS -lt $end ]; do sleep 0.01; done
}

children_of() {
    cat /proc/[0-9]*/stat 2>/dev/null |
        awk -v parent="$1" '{ pid = $1; sub(/.*\) /, ""); if ($2 == parent) print pid }'
}

network_of() {
    if [ -f "$1/network" ]; then cat "$1/network"; fi
}

# server_start KIND DIR: runs DIR/argv in the background and returns when it answers. DIR/network, if
# it is there, has a process in whose network it runs.
# The server gets SERVER_DEATH_SIGNAL if the calling script is killed.
server_start() {
    local kind=$1 dir=$2 argv=() try
    mapfile -t argv <"$dir/argv"
    [ -z "${SERVER_DEATH_SIGNAL:-}" ] ||
        argv=(setpriv --pdeathsig "$SERVER_DEATH_SIGNAL" -- "${argv[@]}")
    # The server outlives the test's folder and pipes, so it must not use them.
    (unset TMPDIR; exec 3>&- 4>&- 5>&-; SERVER_NETWORK=$(network_of "$dir"); as_server setsid "${argv[@]}") >>"$dir/log" 2>&1 </dev/null &
    echo $! >"$dir/pid"
    disown $!
    for ((try = 0; try < 3000; try++)); do
        ! "${kind}_answers" "$dir" || return 0
        running "$(cat "$dir/pid")" || break
        sleep 0.02
    done
    tail -n 15 "$dir/log" >&2
    return 1
}

# start_somewhere KIND DIR MAKE…: makes a server in DIR with the command MAKE…, in which PORT is a free port, and
# starts it. Another script may have taken the port meanwhile. So a failed start is tried again with another port.
# Not for a subshell: the server dies with the shell that starts it.
start_somewhere() {
    local kind=$1 dir=$2 try port
    shift 2
    for try in 1 2 3; do
        port=$(free_port)
        "${@/#PORT/$port}" &&
            SERVER_DEATH_SIGNAL=${SERVER_DEATH_SIGNAL:-QUIT} server_start "$kind" "$dir" && return
    done
    fail "the $kind server in $dir does not start (tried $try times)"
}

# server_stop DIR SIGNAL: stops it, and kills it after 30 seconds. INT is PostgreSQL's "fast" stop.
server_stop() {
    local dir=$1 signal=$2 pid
    [ -s "$dir/pid" ] || return 0
    pid=$(cat "$dir/pid")
    running "$pid" || return 0
    server_thaw "$dir"
    kill -"$signal" "$pid" 2>/dev/null || return 0
    wait_gone 30 "$pid" || server_crash "$dir"
}

# server_crash DIR: kills the server. PostgreSQL's children notice and end by themselves. It refuses
# to start again before they have ended.
server_crash() {
    local pid children
    pid=$(cat "$1/pid")
    mapfile -t children < <(children_of "$pid")
    kill -KILL "$pid" 2>/dev/null || return 0
    kill -CONT "${children[@]}" 2>/dev/null || true
    # MySQL does not start if the lock file of its socket names a process that has ended and was not collected.
    wait_gone 30 "$pid" "${children[@]}" && : >"$1/pid" && rm -f "$1/s.sock.lock"
    # PostgreSQL does not start either. PID 1 may collect it late.
    wait_collected "$pid"
}

# A thread may still answer for a moment after kill.
has_stopped() { ! grep -qsv ') [TtZX] ' "/proc/$1/task/"*/stat; }

freeze_process() {
    kill -STOP "$1" 2>/dev/null || return 0
    while ! has_stopped "$1"; do sleep 0.01; done
}

# server_freeze DIR, server_thaw DIR: stop the server and its children, and let them go on. The
# server comes first, since it may start another child until it has stopped.
server_freeze() {
    local server pid
    server=$(cat "$1/pid")
    freeze_process "$server"
    for pid in $(children_of "$server"); do freeze_process "$pid"; done
}

server_thaw() {
    local pid
    pid=$(cat "$1/pid")
    # shellcheck disable=SC2046 # a list of numbers
    kill -CONT $(children_of "$pid") "$pid" 2>/dev/null || true
}

# make_data DIR PROGRAM COMMAND…: DIR/data as COMMAND makes it, unless it is there. In a run of tests
# (run-tests.sh) PROGRAM's data are made once and copied then.
make_data() {
    local dir=$1 kept=${ROWLOCK_TEST_RUN:+$ROWLOCK_TEST_RUN/data${2//\//-}}
    shift 2
    if [ -d "$dir/data" ]; then return 0; fi
    if [ -n "$kept" ] && [ -d "$kept" ]; then
        cp -a "$kept" "$dir/data"
        return
    fi
    "$@" || return 1
    if [ -n "$kept" ]; then
        cp -a "$dir/data" "$kept.$$" && { mv -T "$kept.$$" "$kept" 2>/dev/null || rm -rf "$kept.$$"; }
    fi
}

# --- PostgreSQL: PGBIN is the folder of its programs (default: the newest version installed).

find_pgbin() {
    if [ -z "${PGBIN:-}" ]; then
        PGBIN=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
        [ -x "$PGBIN/postgres" ] || PGBIN=$(dirname "$(command -v postgres || echo /none/postgres)")
    fi
    [ -x "$PGBIN/postgres" ] ||
        fail "no PostgreSQL server: install the package postgresql, or set PGBIN"
}

# postgres_make DIR PORT [-c NAME=VALUE…]: a new cluster with the superuser postgres, without
# passwords.
postgres_make() {
    local dir=$1 port=$2
    shift 2
    find_pgbin
    make_data "$dir" "$PGBIN" postgres_init "$dir" || return 1
    echo "$port" >"$dir/port"
    printf '%s\n' "$PGBIN/postgres" -D "$dir/data" -p "$port" -k "$dir" \
        -c listen_addresses=127.0.0.1 -c max_connections=200 -c shared_buffers=64MB "$@" >"$dir/argv"
}

# quietly LOG COMMAND…: as the server's account. What it says is shown if it fails.
quietly() {
    (unset TMPDIR; as_server "${@:2}") >"$1" 2>&1 </dev/null || { cat "$1" >&2; return 1; }
}

postgres_init() { quietly "$1/initdb.log" "$PGBIN/initdb" -D "$1/data" -U postgres -A trust -E UTF8 --locale=C -N; }

# Ready if postmaster.pid says so and names this process. After a crash an old file stays behind.
postgres_answers() {
    local lines=()
    mapfile -t lines 2>/dev/null <"$1/data/postmaster.pid" || return 1
    [ "${lines[0]:-}" = "$(cat "$1/pid")" ] || return 1
    case ${lines[7]:-} in ready* | standby*) return 0 ;; esac
    return 1
}

postgres_stop() { server_stop "$1" INT; }

# postgres_copy PRIMARY_DIR DIR PORT NAME [-c NAME=VALUE…]: a standby with the application name
# NAME.
postgres_copy() {
    local primary=$1 dir=$2 port=$3 name=$4
    shift 4
    find_pgbin
    quietly "$dir/copy.log" "$PGBIN/pg_basebackup" -D "$dir/data" -R -X stream -c fast --no-sync \
        -d "host=127.0.0.1 port=$(cat "$primary/port") user=postgres application_name=$name" || return 1
    postgres_make "$dir" "$port" "$@"
}

# postgres_promote DIR: returns when the standby takes writes.
postgres_promote() {
    (as_server "$PGBIN/pg_ctl" -s -w -D "$1/data" promote) </dev/null
}

# postgres_shell DIR SQL
postgres_shell() {
    "$PGBIN/psql" -X -q -A -t -h 127.0.0.1 -p "$(cat "$1/port")" -U postgres -d postgres -c "$2"
}

# --- MySQL and MariaDB: MYSQL_BASEDIR is the folder that holds sbin/mysqld or sbin/mariadbd.

find_mysqld() {
    local candidate
    for candidate in "${MYSQL_BASEDIR:-/none}"/{sbin,bin}/{mariadbd,mysqld}; do
        [ ! -x "$candidate" ] || { MYSQLD=$candidate && return; }
    done
    [ -n "${MYSQL_BASEDIR:-}" ] || ! MYSQLD=$(command -v mariadbd || command -v mysqld) || return 0
    fail "no MySQL server: install the package mariadb-server-core, or set MYSQL_BASEDIR"
}

# The client program of either product can ask whether a server answers.
mysql_shell() {
    local dir=$1
    shift
    "$(command -v mariadb || command -v mysql)" --no-defaults --socket="$dir/s.sock" --user=root \
        --connect-timeout=2 --batch --skip-column-names "$@"
}

# mysql_make DIR PORT [--OPTION…]: new data with the user root, without a password.
mysql_make() {
    local dir=$1 port=$2 base=() more=()
    shift 2
    find_mysqld
    case $("$MYSQLD" --no-defaults --version) in
        *MariaDB*)
            base=(--no-defaults ${MYSQL_BASEDIR:+--basedir="$MYSQL_BASEDIR"} --datadir="$dir/data")
            more=(--innodb-log-file-size=32M)
            make_data "$dir" "$MYSQLD" mariadb_init "$dir" "${base[@]}" "${more[@]}" || return 1
            ;;
        *)
            base=(--no-defaults --datadir="$dir/data" --secure-file-priv=)
            if [ -n "${MYSQL_BASEDIR:-}" ]; then
                base+=(--basedir="$MYSQL_BASEDIR" --plugin-dir="$MYSQL_BASEDIR/lib/mysql/plugin"
                    --lc-messages-dir="$MYSQL_BASEDIR/share/mysql"
                    --character-sets-dir="$MYSQL_BASEDIR/share/mysql/charsets")
            fi
            more=(--mysqlx=OFF --skip-log-bin --innodb-redo-log-capacity=64M)
            make_data "$dir" "$MYSQLD" oracle_init "$dir" "${base[@]}" || return 1
            ;;
    esac
    echo "$port" >"$dir/port"
    printf '%s\n' "$MYSQLD" "${base[@]}" --socket="$dir/s.sock" --pid-file="$dir/mysqld.pid" \
        --bind-address=127.0.0.1 --port="$port" --tmpdir="$dir" --skip-name-resolve --max-connections=1000 \
        --innodb-buffer-pool-size=64M "${more[@]}" "$@" >"$dir/argv"
}

mariadb_init() {
    local dir=$1 program=mariadb-install-db
    shift
    [ -z "${MYSQL_BASEDIR:-}" ] || program=$MYSQL_BASEDIR/bin/mariadb-install-db
    # A server that starts removes all temporary tables in its tmpdir, so each has its own.
    quietly "$dir/init.log" "$program" "$@" --tmpdir="$dir" --auth-root-authentication-method=normal --skip-test-db \
        --skip-name-resolve
}

oracle_init() {
    local dir=$1
    shift
    cat >"$dir/init.sql" <<'SQL'
CREATE USER root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
SQL
    chmod 644 "$dir/init.sql"
    quietly "$dir/init.log" "$MYSQLD" "$@" --tmpdir="$dir" --initialize-insecure --init-file="$dir/init.sql"
}

mysql_answers() {
    [ -S "$1/s.sock" ] && mysql_shell "$1" -e 'SELECT 1' >/dev/null 2>&1
}

mysql_stop() { server_stop "$1" TERM; }

# --- What the with-*.sh scripts share.

# serve KIND OPTION…: makes a server in $dir, starts it, and stops it when the script ends.
serve() {
    local kind=$1
    shift
    trap 'stop_serving' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    start_somewhere "$kind" "$dir" "${kind}_make" "$dir" PORT "$@"
}

stop_serving() {
    trap '' INT TERM HUP
    [ ! -f "$dir/argv" ] || "${kind}_stop" "$dir"
    rm -rf "$dir"
}
