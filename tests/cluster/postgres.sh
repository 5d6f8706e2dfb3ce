# shellcheck shell=bash
# A primary and a standby of PostgreSQL under a load; sourced by tests/cluster/postgres_*.t.
#
#     make_pair sync|async      starts both, and sets LOAD_URLS: the primary is the first host
#     start_standby             after a crash or stop
#     promote                   with marks before and after
#
. "$(dirname "${BASH_SOURCE[0]}")/../drivers/failover.sh"
. "$(dirname "${BASH_SOURCE[0]}")/load.sh"

find_pgbin
replication=

make_primary() {
    local names=()
    [ "$replication" = async ] || names=(-c synchronous_standby_names=s1)
    postgres_make "$primary" "$1" -c fsync=off "${names[@]}"
}

start_standby() { SERVER_DEATH_SIGNAL=QUIT server_start postgres "$standby" || fail "the standby does not start"; }

make_pair() {
    replication=$1
    two_dirs postgres
    start_server "$primary" make_primary
    start_server "$standby" make_standby
    ok "a standby follows a primary" until_true 20 follows
    LOAD_URLS="postgresql://postgres@$(address "$primary"),$(address "$standby")/postgres"
    ROWLOCK_URL=$LOAD_URLS
    export LOAD_URLS ROWLOCK_URL
    load_install
}

promote() {
    load_mark back
    ok "the standby is promoted" postgres_promote "$standby"
    load_mark promoted
}
