#!/usr/bin/env bash
# A primary that dies, and its synchronous standby that takes its place, seen through a URL that names both.
# Servers are this test's own.
. "$(dirname "$0")/failover.sh"

[ -n "${ROWLOCK_TEST_POSTGRES_URL:-}" ] || skip_all "no PostgreSQL to test with"

two_dirs postgres
make_primary() {
    postgres_make "$primary" "$1" -c fsync=off -c synchronous_standby_names=s1
}

# Takes turns at one lock until it is told to stop; each time one line with the token. A run that begins while no
# server takes writes waits for one.
take_turns() {
    while [ ! -e "$work/stop" ]; do
        "$command" run --ttl 60 counted -- sh -c 'echo "$ROWLOCK_TOKEN"' >>"$work/tokens" 2>>"$work/turns.err" || {
            echo $? >>"$work/failures"
            sleep 0.05
        }
    done
}
tokens() { wc -l <"$work/tokens"; }
more_tokens() { [ "$(tokens)" -ge "$1" ]; }

two_servers() {
    start_server "$primary" make_primary
    start_server "$standby" make_standby
    ok "a standby follows a primary, synchronously" until_true 60 follows
    ROWLOCK_URL=postgresql://postgres@$(address "$primary"),$(address "$standby")/postgres
    backwards=postgresql://postgres@$(address "$standby"),$(address "$primary")/postgres
    export ROWLOCK_URL
}

# Does the primary take writes?
writes() {
    postgres_shell "$primary" "ALTER SYSTEM SET default_transaction_read_only = $([ "$1" = on ] && echo off || echo on)"
    postgres_shell "$primary" 'SELECT pg_reload_conf()' >/dev/null
}

gives() {
    rl "${@:2}"
    [ "$status" = "$1" ]
}

wrong_servers() {
    exits "of a URL's hosts the one that takes writes is found" 0 --url "$backwards" install
    exits "first or last" 0 list
    exits "unless the URL says that any will do" 1 check --url "$backwards?target_session_attrs=any"
    has "which is not fit for locks then" "$out" "it takes no writes"
    has "nor knows its fellows" "$out" "unknown: this server is a standby"
    status=0
    PGOPTIONS='-c default_transaction_read_only=on' rl list
    same "a user whose transactions are read-only is told so, though there are other hosts" "$status" 78
    has "and what to do" "$err" "default_transaction_read_only is on for this user, database or URL"
    writes off
    until_true 60 gives 69 list || fail "the primary takes writes"
    has "where none takes writes, none will do" "$err" "none of the URL's 2 servers takes writes"
    start_until "the server is away; still waiting: none of the URL's 2 servers" run waits -- touch "$work/waited"
    writes on
    ends "a run that begins while none takes writes waits until one does" 0 "$pid"
    ok "and runs then" test -e "$work/waited"
    exits "hosts, addresses and ports that do not fit each other are libpq's to refuse" 64 list \
        --url "postgresql://postgres@127.0.0.1,127.0.0.1/postgres?hostaddr=127.0.0.1&port=1,2,3"
    exits "hosts may stand in parameters" 0 list --url \
        "postgresql:///postgres?user=postgres&hostaddr=127.0.0.1,127.0.0.1&port=1,$(cat "$primary/port")"
}

hanging_servers() {
    listen_silently
    ok "a host that never answers leaves time for the others: it takes a third of the connect timeout" \
        until_true 60 within 3500 0 "${ROWLOCK_URL/@/@127.0.0.1:$hung_port,}"
    exits "where it is the last the time is up" 69 list --url \
        "postgresql://postgres@127.0.0.1:1,127.0.0.1:$hung_port/postgres"
    has "which is said" "$err" "none of the URL's 2 servers can be reached"
    server_freeze "$primary"
    exits "a frozen server is one that never answers" 69 list
    has "so that none is left that takes writes" "$err" "none of the URL's 2 servers takes writes"
    server_thaw "$primary"
}

patroni_is_seen() { rl check --json; [ "$(replication value)" != "synchronous, standbys: 1" ]; }
commits_hang() { rl check --json; [ "$(replication value)" = "no standby is connected, and commits wait for one" ]; }

findings() {
    exits "check is content with a synchronous standby" 0 check --json
    same "which it has seen" "$(replication value)" "synchronous, standbys: 1"
    same "and likes" "$(replication verdict)" "ok"
    PGOPTIONS='-c synchronous_commit=local' rl check --json
    same "commits that do not wait for it are worth a warning" "$(replication verdict)" "warning"
    has "with the setting" "$(replication value)" "synchronous_commit local"
    postgres_shell "$primary" "CREATE ROLE app LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO app"
    rl check --json --url "${ROWLOCK_URL/postgres@/app@}"
    same "a user without privileges sees the standby" "$(replication value)" "synchronous, standbys: 1"
    errs "a standby does not say LOST" 69 "may lack the grant" verify --owner me --token 77 none \
        --url "postgresql://postgres@$(address "$standby")/postgres"
    postgres_shell "$primary" "REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) FROM PUBLIC"
    exits "who may not write the proof is told LOST without" 76 verify --owner me --token 77 none --url "${ROWLOCK_URL/postgres@/app@}"
    PGAPPNAME='Patroni heartbeat' "$PGBIN/psql" "$ROWLOCK_URL" -Xqc "SELECT pg_sleep(600)" &
    local agent=$!
    until_true 60 patroni_is_seen
    has "under Patroni the setting is named that makes it exact" "$(replication value)" "synchronous_mode_strict"
    kill $agent
    postgres_stop "$standby"
    until_true commits_hang
    same "when the synchronous standby is gone, check says that commits hang" $? 0
    same "and is not content" "$status" 1
    same "since no lock is granted" "$(replication verdict)" "bad"
    postgres_shell "$primary" "SET synchronous_commit = local; CREATE ROLE rds_superuser"
    rl check --json --url "postgresql://postgres@$(address "$primary")/postgres"
    same "also where the URL has one host, on a hosted service" "$(replication verdict)" "bad"
    PGOPTIONS='-c synchronous_commit=local' rl check --json
    has "whose copies are not seen" "$(replication value)" "not seen here: the copies of Amazon RDS"
    same "which is no fault" "$(replication verdict)" "ok"
    postgres_shell "$primary" "SET synchronous_commit = local; DROP ROLE rds_superuser"
    SERVER_DEATH_SIGNAL=QUIT server_start postgres "$standby" || fail "the standby does not start again"
    ok "the standby is back" until_true 60 follows
}

failover() {
    local token turns ticks

    exits "a lock is taken for long" 0 acquire held --owner me --ttl 10m
    token=$out
    start run --ttl 60 job -- sh -c 'while [ ! -e "$0/stop" ]; do echo tick >>"$0/ticks"; sleep 0.05; done' "$work"
    local job=$pid
    : >"$work/failures"
    take_turns &
    local loop=$!
    ok "a job runs" until_true 60 longer "$work/ticks" 0
    ok "and locks are granted" until_true 60 more_tokens 20

    server_crash "$primary"
    turns=$(tokens)
    until_true 60 grep -q "the server is away" "$work/turns.err"
    ok "the primary is gone and the standby promoted" postgres_promote "$standby"
    ticks=$(wc -c <"$work/ticks")
    ok "locks are granted again" until_true 60 more_tokens $((turns + 20))

    exits "what was granted before is held still" 0 verify held --owner me --token "$token"
    exits "by the same owner only" 75 acquire held -n --owner other
    exits "which can renew it" 0 renew held --owner me --token "$token"
    exits "and release it" 0 release held --owner me --token "$token"
    exits "the next grant" 0 acquire held --owner other
    ok "has a greater token" test "$out" -gt "$token"
    exits "the job's lock is held" 75 acquire job -n --owner other
    ok "and the job goes on" until_true 60 longer "$work/ticks" "$ticks"

    touch "$work/stop"
    ends "to its end" 0 "$job"
    wait "$loop"
    same "no token was granted twice, and each was greater than the one before" \
        "$(sort -n -u "$work/tokens" | diff - "$work/tokens")" ""
    same "clients were refused only while there was no primary" "$(grep -vx 69 "$work/failures")" ""
}

# missing URL: check is done on the new primary, which has no standby. Sets $found.
missing() {
    rl check --json --url "$1"
    found="$(replication verdict): $(replication value)"
}
is_fine() { missing "$1" && [ "$found" = "ok: no standby is connected" ]; }

alone() {
    local url
    url=postgresql://postgres@$(address "$standby")/postgres
    missing "$url"
    same "the new primary has no standby, and has been one: a warning" "$found" \
        "warning: no standby is connected, and this server has been one"
    has "which says what to do" "$(replication advice)" "connect a standby"
    postgres_shell "$standby" "ALTER SYSTEM RESET primary_conninfo" && postgres_shell "$standby" 'SELECT pg_reload_conf()' >/dev/null
    holds "without a sign of a standby all is well" until_true is_fine "$url"
    missing "$ROWLOCK_URL"
    same "several hosts are a sign" "$found" "warning: no standby is connected"
    postgres_shell "$standby" "SELECT pg_create_physical_replication_slot('gone')" >/dev/null
    missing "$url"
    same "so is a slot that waits" "$found" "warning: no standby is connected, and a replication slot waits for one"
}

two_servers
wrong_servers
hanging_servers
findings
failover
alone
done_testing
