#!/usr/bin/env bash
# Every order of the steps of two or three sessions on PostgreSQL, by its own isolationtester: see sessions.pl. And an
# order within one statement.
#
#   ROWLOCK_TEST_ORDERS=all   each order, of three sessions up to 7 steps together; else each 16th of two sessions, and
#                             each 128th of three with up to 6 steps
. "$(dirname "$0")/../cli/cli.sh"

[ -n "${ROWLOCK_TEST_POSTGRES_URL:-}" ] || skip_all "ROWLOCK_TEST_POSTGRES_URL names no server"
database=interleave_$$
url=${ROWLOCK_TEST_POSTGRES_URL%/*}/$database
psql -qX "$ROWLOCK_TEST_POSTGRES_URL" -c "CREATE DATABASE $database" || exit 1
trap 'psql -qX "$ROWLOCK_TEST_POSTGRES_URL" -c "DROP DATABASE $database WITH (FORCE)"' EXIT
exits "the tables are installed" 0 install --url "$url"
ask() { psql -qAtX "$url" -c "$1"; }

# A rival takes an expired lock over after release_many has seen the row, and before it deletes it. A trigger holds the
# statement there.
ask "CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
         IF old.name = ''a gate'' THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN old; END';
     CREATE TRIGGER halt BEFORE DELETE ON rowlock_locks FOR EACH ROW EXECUTE FUNCTION halt();
     INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires, ttl)
     VALUES ('a gate', 0, 0, 'we', 1, 1, 1, 1, 1), ('b lock', 0, 0, 'we', 1, 2, 1, 1, 1)"

values=("'{a gate,b lock}'" "'{0,0}'" "'{we,we}'" "'{1,1}'")
text=$(grep -v '^--' sql/postgres/lock/release_many.sql)
for word in name slot owner token; do
    text=${text//\{$word\}/${values[0]}}
    values=("${values[@]:1}")
done

coproc psql -qAtX "$url"
echo "SELECT pg_advisory_lock(1), 'held';" >&"${COPROC[1]}"
read -r _ <&"${COPROC[0]}"
ask "$text" >"$work/released" &
pid=$!
waits() { [ "$(ask "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")" = 1 ]; }
ok "the statement has seen both rows" until_true 20 waits
ask "UPDATE rowlock_locks SET owner = 'rival', token = 2, expires = 9000000000000000 WHERE name = 'b lock'"
echo "SELECT pg_advisory_unlock(1);" >&"${COPROC[1]}"
finished "$pid"
is "the rival's grant stays" "$(ask "SELECT owner FROM rowlock_locks")" rival
is "and only the other lock is told to be released" "$(grep -c '|t$' "$work/released")" 1
ask "DROP TRIGGER halt ON rowlock_locks"

tester=$(find /usr/lib/postgresql /usr/local/pgsql -name isolationtester 2>/dev/null | sort -V | tail -n 1)
[ -n "$tester" ] || { skip "every order" "PostgreSQL's isolationtester was not found (Debian: postgresql-client)"; done_testing; exit; }
ask "CREATE FUNCTION rl_newest() RETURNS bigint LANGUAGE sql VOLATILE AS
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

steps=6 parts=(16 128) each=("each 16th" "each 128th")
[ "${ROWLOCK_TEST_ORDERS:-}" != all ] || { steps=7 parts=(1 1) each=(each each); }
for isolation in "read committed" "repeatable read" serializable; do
    ok "two sessions, ${each[0]} order, $isolation" orders 2 8 "${parts[0]}" "$isolation"
    ok "three sessions, ${each[1]} order, $isolation" orders 3 $steps "${parts[1]}" "$isolation"
done
for met in grants guards waits; do
    ok "$met were met" grep -q "[1-9][0-9]* $met" "$work/counts"
done

done_testing
