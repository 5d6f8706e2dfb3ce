#!/usr/bin/env bash
# An asynchronous standby of PostgreSQL that was behind is promoted. What is lost is counted. Tokens are
# raised before programs can connect: then all that is granted later is exact. Raised a moment too late,
# tokens are granted twice.
. "$(dirname "$0")/postgres.sh"

# Longer than a lease.
LEASE_S=5
# Tickets that were lost, and those of waiters that had their turn, delay others for so long.
export LOAD_TICKET_MS=6000

start_standby() {
    SERVER_DEATH_SIGNAL=QUIT server_start postgres "$standby" || fail "the standby does not start"
}

# The standby is away while grants are made and commits answered. Then the primary dies.
lose() {
    load_goes_on "locks are granted"
    postgres_stop "$standby"
    load_goes_on "and more, which the standby does not get" 200
    server_crash "$primary"
    load_mark cut
}

# The recipes of docs/OPERATIONS.md. The first: only who may enter the server's folder can connect.
close_by_address() {
    postgres_make "$standby" "$(cat "$standby/port")" -c fsync=off -c listen_addresses=
    start_standby
    operator="postgresql:///postgres?host=$standby&port=$(cat "$standby/port")&user=postgres"
}
open_by_address() {
    postgres_stop "$standby"
    postgres_make "$standby" "$(cat "$standby/port")" -c fsync=off
    start_standby
}

# The second: transactions are read-only, unless a session says otherwise.
is_read_only() { [ "$(postgres_shell "$standby" "SHOW default_transaction_read_only")" = on ]; }
close_by_setting() {
    start_standby
    postgres_shell "$standby" "ALTER SYSTEM SET default_transaction_read_only = on"
    postgres_shell "$standby" "SELECT pg_reload_conf()" >/dev/null
    ok "new sessions are read-only" until_true 10 is_read_only
    operator="postgresql://postgres@$(address "$standby")/postgres?options=-c%20default_transaction_read_only%3Doff"
}
open_by_setting() {
    PGOPTIONS='-c default_transaction_read_only=off' \
        postgres_shell "$standby" "ALTER SYSTEM RESET default_transaction_read_only"
    postgres_shell "$standby" "SELECT pg_reload_conf()" >/dev/null
}

with_recipe() { # with_recipe HOW EXIT_STATUS
    make_pair async
    exits "check is done before" 0 check --json
    has "it sees the standby" "$(replication value)" "asynchronous, standbys: 1"
    same "and warns" "$(replication verdict)" "warning"
    load_begin "closed_by_$1"
    lose
    "close_by_$1"
    promote
    exits "closed by $1: meanwhile programs cannot write" "$2" list
    exits "tokens are raised by the operator" 0 raise-tokens --url "$operator"
    load_mark raised
    sleep $LEASE_S
    load_mark open
    "open_by_$1"
    load_goes_on "programs connect, and locks are granted again"
    load_end "tokens are raised while the server is closed by $1" --may-lose
    clean_up
}

# The same without closing the server.
too_late() {
    make_pair async
    load_begin late
    lose
    start_standby
    promote
    load_goes_on "programs connect at once"
    exits "tokens are raised a moment later" 0 raise-tokens
    load_goes_on "and locks are granted" 50
    load_breaks "that is too late: tokens are granted twice" "no token is granted twice"
}

with_recipe address 69
with_recipe setting 78
too_late
done_testing
