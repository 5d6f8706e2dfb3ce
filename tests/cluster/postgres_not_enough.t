#!/usr/bin/env bash
# Settings of PostgreSQL that make a synchronous standby asynchronous. The standby is away, the primary goes on,
# and dies; the standby is promoted. The judge must find what docs/CLUSTERS.md says.
. "$(dirname "$0")/postgres.sh"

# Tickets that were lost, and those of waiters that had their turn, delay others for so long.
export LOAD_TICKET_MS=6000

say() { postgres_shell "$primary" "$1"; }

fails_over() {
    load_goes_on "$1: the primary goes on without the standby" 200
    server_crash "$primary"
    start_standby
    promote
    load_goes_on "$1: the new primary grants locks"
    load_breaks "$1: tokens are granted twice" "no token is granted twice"
    clean_up
}

make_pair sync
say "ALTER ROLE postgres SET synchronous_commit = local"
exits "synchronous_commit local of one role: check is done" 0 check --json
same "and warns" "$(replication verdict)" "warning"
load_begin local
postgres_stop "$standby"
fails_over "synchronous_commit local of one role"

# Not on the command line, which nothing can change while the server runs.
make_primary() { postgres_make "$primary" "$1" -c fsync=off; }
replication=sync
two_dirs postgres
start_server "$primary" make_primary
start_server "$standby" make_standby
say "ALTER SYSTEM SET synchronous_standby_names = 's1'"
say "SELECT pg_reload_conf()" >/dev/null
ok "a standby follows a primary" until_true 20 follows
LOAD_URLS="postgresql://postgres@$(address "$primary"),$(address "$standby")/postgres"
ROWLOCK_URL=$LOAD_URLS
load_install
load_begin emptied
postgres_stop "$standby"
say "ALTER SYSTEM RESET synchronous_standby_names"
say "SELECT pg_reload_conf()" >/dev/null
fails_over "synchronous_standby_names emptied for a while"
done_testing
