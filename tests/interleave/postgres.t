#!/usr/bin/env bash
# Every order of the steps of two or three sessions on PostgreSQL, by its own isolationtester: see sessions.pl.
#
#   ROWLOCK_TEST_ORDERS=all   each order, of three sessions up to 7 steps together; else each 8th of two sessions, and
#                             each 64th of three with up to 6 steps
. "$(dirname "$0")/../cli/cli.sh"

[ -n "${ROWLOCK_TEST_POSTGRES_URL:-}" ] || skip_all "ROWLOCK_TEST_POSTGRES_URL names no server"
tester=$(find /usr/lib/postgresql /usr/local/pgsql -name isolationtester 2>/dev/null | sort -V | tail -n 1)
[ -n "$tester" ] || skip_all "PostgreSQL's isolationtester was not found (Debian: postgresql-client)"

database=interleave_$$
url=${ROWLOCK_TEST_POSTGRES_URL%/*}/$database
psql -qX "$ROWLOCK_TEST_POSTGRES_URL" -c "CREATE DATABASE $database" || exit 1
trap 'psql -qX "$ROWLOCK_TEST_POSTGRES_URL" -c "DROP DATABASE $database WITH (FORCE)"' EXIT
rl --url "$url" install
is "the tables are installed" "$status" 0
psql -qX "$url" -c "CREATE FUNCTION rl_newest() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT coalesce((SELECT token FROM rowlock_locks WHERE slot = 0), 0)'" || exit 1

# orders SIZE STEPS PARTS ISOLATION: passes when no order of these specifications violates an invariant.
orders() {
    local folder="$work/$1 $4" spec wrong=0
    mkdir -p "$folder"
    perl tests/interleave/sessions.pl spec "$folder" "$@" || return
    for spec in "$folder"/*.spec; do
        PGISOLATIONTIMEOUT=60 "$tester" "$url" <"$spec" >"${spec%.spec}.log" 2>&1
    done
    perl tests/interleave/sessions.pl judge "$folder" >"$work/judged" || wrong=1
    tail -n 1 "$work/judged" >>"$work/counts"
    [ $wrong = 0 ] || head -n 20 "$work/judged" >&2
    return $wrong
}

steps=6 parts=(8 64) each=("each 8th" "each 64th")
[ "${ROWLOCK_TEST_ORDERS:-}" != all ] || { steps=7 parts=(1 1) each=(each each); }
for isolation in "read committed" "repeatable read" serializable; do
    ok "two sessions, ${each[0]} order, $isolation" orders 2 8 "${parts[0]}" "$isolation"
    ok "three sessions, ${each[1]} order, $isolation" orders 3 $steps "${parts[1]}" "$isolation"
done
for met in grants guards waits; do
    ok "$met were met" grep -q "[1-9][0-9]* $met" "$work/counts"
done

done_testing
