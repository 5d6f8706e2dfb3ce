#!/usr/bin/env bash
# An asynchronous standby of PostgreSQL that was behind is promoted. What is lost is counted. Tokens are
# raised before programs can connect: then all that is granted later is exact. Raised a moment too late,
# tokens are granted twice.
. "$(dirname "$0")/postgres.sh"

# Longer than a lease.
LEASE_S=5
# Tickets that were lost, and those of waiters that had their turn, delay others for so long.
export LOAD_TICKET_MS=6000

# The standby is away while grants are made and commits answered. Then the primary dies.
lose() {
    load_goes_on "locks are granted"
    postgres_stop "$standby"
    load_goes_on "and more, which the standby does not get" 200
    server_crash "$primary"
    load_mark cut
}

# The recipes of docs/OPERATIONS.md. The first: only who may enter the server's folder can connect.
by_address() {
    postgres_make "$standby" "$(cat "$standby/port")" -c fsync=off -c listen_addresses=
    start_standby
    promote
    exits "closed by address: meanwhile programs cannot write" 69 list
    exits "tokens are raised by the operator" 0 raise-tokens \
        --url "postgresql:///postgres?host=$standby&port=$(cat "$standby/port")&user=postgres"
    load_mark raised
    sleep $LEASE_S
    load_mark open
    postgres_stop "$standby"
    postgres_make "$standby" "$(cat "$standby/port")" -c fsync=off
    start_standby
}

# stand_in NAME LINE…: a program that the recipe runs in place of its own.
stand_in() {
    printf '%s\n' '#!/bin/bash' "${@:2}" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# The second is run as it stands there. Its pause tells the judge when tokens are raised, and when programs connect.
by_setting() {
    start_standby
    mkdir -p "$work/bin"
    ln -sf "$command" "$work/bin/rowlock"
    stand_in pg_ctl ". tests/lib/server.sh; find_pgbin; '$load' mark '$load_folder' back
        postgres_promote '$standby' && '$load' mark '$load_folder' promoted"
    stand_in sleep "PGOPTIONS= rowlock list; echo \$? >'$work/closed'; '$load' mark '$load_folder' raised
        /bin/sleep $LEASE_S; '$load' mark '$load_folder' open"
    awk '/^PostgreSQL, by a setting/ { here = 1 } /^```$/ { if (inside) exit; inside = here; next } inside' docs/OPERATIONS.md |
        sed "s/ -h db2 -d ops / -h 127.0.0.1 -p $(cat "$standby/port") -U postgres -d postgres /
            s,ops@db2/ops,postgres@$(address "$standby")/postgres,
            s/^\(psql.* 'SHOW [a-z_]*'\).*/until \1 -tA | grep -qx on; do :; done/" >"$work/recipe.sh"
    ok "the recipe goes through" env PATH="$work/bin:$PGBIN:$PATH" bash -eu "$work/recipe.sh"
    is "closed by setting: meanwhile programs cannot write" "$(<"$work/closed")" 69
}

with_recipe() { # with_recipe HOW
    make_pair async
    exits "check is done before" 0 check --json
    has "it sees the standby" "$(replication value)" "asynchronous, standbys: 1"
    same "and warns" "$(replication verdict)" "warning"
    load_begin "closed_by_$1"
    lose
    "by_$1"
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

with_recipe address
with_recipe setting
too_late
done_testing
