#!/usr/bin/env bash
# A URL with several MySQL or MariaDB hosts: those that are dead, hang or take no writes are passed over, also
# when the one in use becomes so. Servers are this test's own.
. "$(dirname "$0")/failover.sh"

[ -n "${ROWLOCK_TEST_MYSQL_URL:-}" ] || skip_all "no MySQL to test with"

two_dirs mysql
make_primary() {
    mysql_make "$primary" "$1" --log-bin=log --server-id=1 --sync-binlog=0
}
make_standby() {
    mysql_make "$standby" "$1" --log-bin=log --server-id=2 --sync-binlog=0
}

follow() {
    local port
    port=$(cat "$primary/port")
    case $(mysql_shell "$primary" -e 'SELECT VERSION()') in
        *MariaDB*) mysql_shell "$standby" -e "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = $port,
                   MASTER_USER = 'root', MASTER_CONNECT_RETRY = 1; START SLAVE" ;;
        *) mysql_shell "$standby" -e "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = $port,
                   SOURCE_USER = 'root', SOURCE_CONNECT_RETRY = 1; START REPLICA" ;;
    esac
}
stop_following() {
    mysql_shell "$standby" -e 'STOP SLAVE' 2>/dev/null || mysql_shell "$standby" -e 'STOP REPLICA'
}
read_only() { mysql_shell "$1" -e "SET GLOBAL read_only = $2"; }

has_user() { [ "$(mysql_shell "$1" -e "SELECT user FROM mysql.user WHERE user = 'app'")" = app ]; }
has_tables() { mysql_shell "$1" -e 'SELECT * FROM rowlock.rowlock_meta'; }
renewals() { mysql_shell "$1" -e "SELECT renewals FROM rowlock.rowlock_locks WHERE name = 'job'"; }
renewed() { [ "$(renewals "$standby")" -gt "$1" ]; }
followed() { [ "$(renewals "$standby")" = "$(renewals "$primary")" ]; }
semi_synchronous() {
    rl check --json
    [ "$(replication value)" = "semi-synchronous, replicas: 1$1" ]
}

waits_for_none() {
    rl check --json
    [ "$(replication value)" = "semi-synchronous, but at present no commit waits for a replica" ]
}

two_servers() {
    start_server "$primary" make_primary
    start_server "$standby" make_standby
    mysql_shell "$primary" -e "CREATE DATABASE rowlock; CREATE USER app@'127.0.0.1'; GRANT ALL ON rowlock.* TO app@'127.0.0.1'"
    follow
    until_true 60 has_user "$standby" || fail "the replica does not get the user"
    read_only "$standby" 1
    ROWLOCK_URL=mysql://app@$(address "$primary"),$(address "$standby")/rowlock
    backwards=mysql://app@$(address "$standby"),$(address "$primary")/rowlock
    export ROWLOCK_URL
}

wrong_servers() {
    exits "of a URL's hosts the one that takes writes is found" 0 --url "$backwards" install
    exits "first or last" 0 list
    exits "a user that read_only does not stop is stopped all the same" 0 --url "${backwards/app@/root@}" list
    ok "the replica gets the tables from the primary" until_true 60 has_tables "$standby"
    read_only "$primary" 1
    exits "where none takes writes, none will do" 69 list
    has "and the error says so" "$err" "none of the URL's 2 servers takes writes"
    has "and why" "$err" "read_only set"
    exits "a run that may not wait is told so" 69 run -n waits true
    exits "and so is one whose wait is over" 69 run -w 300ms waits true
    has "which said first that it waits" "$err" "the server is away; still waiting: none of the URL's 2 servers"
    start_until "still waiting" run waits -- touch "$work/waited"
    read_only "$primary" 0
    ends "a run that begins while none takes writes waits until one does" 0 "$pid"
    ok "and runs then" test -e "$work/waited"
    has "which it says" "$(<"$work/bg.err")" "the server is back"
    read_only "$primary" 1
    local one
    one=mysql://app@$(address "$primary")/rowlock
    exits "a reader takes a URL with one host only at its word" 0 list --url "$one"
    exits "a client that wants to lock there, and may not wait, is told" 69 run --url "$one" -n waits true
    has "why" "$err" "--read-only option"
    start_until "the server is away; still waiting: .*--read-only option" run --url "$one" waits -- true
    read_only "$primary" 0
    ends "and one that may wait runs when it takes writes" 0 "$pid"
    exits "a socket and several hosts do not go together" 64 list --url "$ROWLOCK_URL?socket=$primary/s.sock"
    exits "nor do a socket and a host with a network address" 64 list --url "$one?socket=$primary/s.sock"
    exits "a refused user is told, though there are other hosts" 77 list --url "${ROWLOCK_URL/app@/nobody:x@}"
}

dead_and_hanging_servers() {
    exits "a dead host is passed over, an IPv6 address as well" 0 list --url "${ROWLOCK_URL/@/@[::1]:1,127.0.0.1:1,}"
    exits "where all are dead the database cannot be reached" 69 list --url "mysql://app@127.0.0.1:1,127.0.0.1:2/rowlock"
    has "which is said" "$err" "none of the URL's 2 servers can be reached"
    listen_silently
    ok "a host that never answers leaves time for the others: a third of the connect timeout, in whole seconds" \
        until_true 60 within 3000 0 "${ROWLOCK_URL/@/@127.0.0.1:$hung_port,}"
    server_freeze "$primary"
    ok "a frozen server is one that never answers, and takes its half of the time" \
        until_true 60 within 5000 69 "$ROWLOCK_URL"
    server_thaw "$primary"
}

findings() {
    exits "check is done" 0 check --json
    case $(mysql_shell "$primary" -e 'SELECT VERSION()') in
        *MariaDB*)
            same "an asynchronous replica is seen by a user without privileges" "$(replication value)" \
                "asynchronous, replicas: 1"
            same "and is worth a warning" "$(replication verdict)" "warning"
            mysql_shell "$primary" -e 'SET GLOBAL rpl_semi_sync_master_enabled = 1'
            mysql_shell "$standby" -e 'SET GLOBAL rpl_semi_sync_slave_enabled = 1; STOP SLAVE; START SLAVE'
            ok "a semi-synchronous one is seen" until_true 60 semi_synchronous " (asynchronous after 10000 ms)"
            rl check --json
            same "a timeout after which it is asynchronous is worth a warning" "$(replication verdict)" "warning"
            mysql_shell "$primary" -e 'SET GLOBAL rpl_semi_sync_master_timeout = 86400000'
            ok "one of a day is none" semi_synchronous ""
            rl check --json
            same "and is fine" "$(replication verdict)" "ok"
            mysql_shell "$primary" -e 'SET GLOBAL rpl_semi_sync_master_timeout = 10000'
            mysql_shell "$standby" -e 'STOP SLAVE'
            ok "where no replica answers it is semi-synchronous by name alone" until_true 60 waits_for_none
            rl check --json
            same "which is worth a warning" "$(replication verdict)" "warning"
            mysql_shell "$standby" -e 'START SLAVE'
            ;;
        *)
            has "a user without privileges cannot know" "$(replication value)" "unknown"
            same "which is not called fine" "$(replication verdict)" "warning"
            exits "another" 0 check --json --url "${ROWLOCK_URL/app@/root@}"
            same "sees the replica" "$(replication value)" "asynchronous, replicas: 1"
            ;;
    esac
}

switch_over() {
    local token renewed job
    exits "a lock is taken for long" 0 acquire held --owner me --ttl 10m
    token=$out
    start run --ttl 30s --grace 1s job -- sh -c 'while [ ! -e "$0/stop" ]; do echo tick >>"$0/ticks"; sleep 0.05; done' "$work"
    job=$pid
    ok "a job runs" until_true 60 longer "$work/ticks" 0
    read_only "$primary" 1
    ok "the replica has all of it" until_true 60 followed
    stop_following
    renewed=$(renewals "$standby")
    read_only "$standby" 0
    ok "when its server takes no writes any more, its lease is renewed on the other" until_true 60 renewed "$renewed"
    server_crash "$primary"
    exits "what was granted before is held still" 0 verify held --owner me --token "$token"
    exits "its owner can release it" 0 release held --owner me --token "$token"
    exits "the next grant" 0 acquire held --owner other
    ok "has a greater token" test "$out" -gt "$token"
    renewed=$(renewals "$standby")
    ok "the lease is renewed again" until_true 60 renewed "$renewed"
    touch "$work/stop"
    ends "and the job goes on to its end" 0 "$job"
}

# The new primary has no replica, and has been one. MySQL shows replicas only to users with a privilege.
alone() {
    local url
    url=mysql://root@$(address "$standby")/rowlock
    rl check --json --url "$url"
    case $out in
        *MariaDB*)
            same "a primary without a replica that has been one is worth a warning" \
                "$(replication verdict): $(replication value)" "warning: no replica is connected, and this server has been one"
            mysql_shell "$standby" -e "SET GLOBAL gtid_slave_pos = ''; SET GLOBAL rpl_semi_sync_slave_enabled = 0"
            rl check --json --url "$url"
            ;;
    esac
    same "without a sign of one all is well" "$(replication verdict): $(replication value)" "ok: no replica is connected"
    rl check --json --url "mysql://root@$(address "$standby"),127.0.0.1:1/rowlock"
    same "several hosts are a sign" "$(replication verdict): $(replication value)" "warning: no replica is connected"
    has "and check says what to do" "$(replication advice)" "connect a standby"
}

two_servers
wrong_servers
dead_and_hanging_servers
findings
switch_over
alone
done_testing
