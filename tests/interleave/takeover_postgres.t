#!/usr/bin/env bash
# A rival takes an expired lock over after release_many has seen the row, and before it deletes it. A trigger holds the
# statement there.
. "$(dirname "$0")/../cli/cli.sh"

[ -n "${ROWLOCK_TEST_POSTGRES_URL:-}" ] || skip_all "ROWLOCK_TEST_POSTGRES_URL names no server"
database=takeover_$$
url=${ROWLOCK_TEST_POSTGRES_URL%/*}/$database
psql -qX "$ROWLOCK_TEST_POSTGRES_URL" -c "CREATE DATABASE $database" || exit 1
trap 'psql -qX "$ROWLOCK_TEST_POSTGRES_URL" -c "DROP DATABASE $database WITH (FORCE)"' EXIT
ask() { psql -qAtX "$url" -c "$1"; }

rl --url "$url" install
is "the tables are installed" "$status" 0
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

done_testing
