#!/usr/bin/env bash
# pgbouncer, in both modes, is killed, frozen and restarted before a PostgreSQL server that goes on.
. "$(dirname "$0")/postgres.sh"
. "$(dirname "$0")/../more/pgbouncer.sh"

command -v pgbouncer >/dev/null || skip_all "pgbouncer is not installed"

two_dirs postgres
bouncer=$(new_server_dir pgb)
mode=
trap 'pgbouncer_stop "$bouncer"; rm -rf "$bouncer"; clean_up' EXIT

make_server() { postgres_make "$primary" "$1" -c fsync=off -c log_statement=all; }

# A proxy such as that of RDS keeps a session for the client whose statement changes it.
nothing_pins() { ! grep -P '(statement|execute [^:]*): .*(set_config|\bSET (?!application_name)|PREPARE|LISTEN|DECLARE)' "$primary/log"; }

start_bouncer() { SERVER_DEATH_SIGNAL=QUIT server_start pgbouncer "$bouncer" || fail "pgbouncer does not start"; }

through_bouncer() { # through_bouncer MODE POOL PARAMETER
    mode=$1
    pgbouncer_make "$bouncer" "$(free_port)" "$(cat "$primary/port")" "$mode" "$2"
    start_bouncer
    LOAD_URLS="postgresql://postgres@$(address "$bouncer")/postgres$3"
}

faults() {
    load_begin "$mode"
    load_goes_on "$mode mode: locks are granted"

    server_crash "$bouncer"
    load_mark cut
    sleep 1
    load_mark back
    start_bouncer
    load_survives "$mode mode: after pgbouncer was killed, locks are granted again" killed

    server_freeze "$bouncer"
    load_outage
    server_thaw "$bouncer"
    load_survives "$mode mode: after it was frozen too" frozen

    pgbouncer_stop "$bouncer"
    start_bouncer
    load_survives "$mode mode: and after a restart" restarted
    load_end "pgbouncer in $mode mode"
    pgbouncer_stop "$bouncer"
}

start_server "$primary" make_server
LOAD_INSTALL_URL=postgresql://postgres@$(address "$primary")/postgres
export LOAD_INSTALL_URL LOAD_URLS
LOAD_URLS=$LOAD_INSTALL_URL load_install
: >"$primary/log"
through_bouncer transaction 30 ""
faults
ok "in transaction mode no statement changes the session" nothing_pins
through_bouncer session 90 "?rowlock_pooler=session"
faults
done_testing
