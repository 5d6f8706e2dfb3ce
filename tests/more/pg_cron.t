#!/usr/bin/env bash
# The recipe of docs/OPERATIONS.md for pg_cron sweeps, each minute instead of each night.
#
# usage: with-postgres.sh tests/more/pg_cron.t
. "$(dirname "$0")/../cli/cli.sh"

db=postgres
base=app
restart() { server stop && server start; }
sql() { psql -qAtX -v ON_ERROR_STOP=1 "$@"; }
outside=$ROWLOCK_TEST_POSTGRES_URL
export ROWLOCK_URL=${outside%/*}/$base
was_swept() { [ "$(sql "$ROWLOCK_URL" -c "SELECT swept > 0 FROM rowlock_meta")" = t ]; }

sql "$outside" -c "CREATE DATABASE $base" -c "CREATE ROLE sweep LOGIN"
printf '%s\n' "shared_preload_libraries = 'pg_cron'" "cron.use_background_workers = on" >>"$ROWLOCK_TEST_POSTGRES_DIR/data/postgresql.conf"
holds "the server starts with pg_cron" restart
exits "the tables are made" 0 install
rl install --print-grants --role sweeper --user sweep
sql "$ROWLOCK_URL" <<<"$out"
rl acquire "left behind" --ttl 100ms --owner gone
awk '/^##/ { inside = $0 == "### pg_cron"; next } /^```/ { block = inside && $0 == "```sql"; next } block' \
    docs/OPERATIONS.md | sed "s/'17 3 \* \* \*'/'* * * * *'/" >"$work/recipe.sql"
holds "the recipe goes through" sql "$outside" -f "$work/recipe.sql"
holds "the job sweeps" until_true 90 was_swept
rl list --json
same "with the rights of its role" "$(json 'scalar @$d')" 0
same "and tells that it went well" \
    "$(sql "$outside" -c "SELECT DISTINCT status, username FROM cron.job_run_details WHERE end_time IS NOT NULL")" "succeeded|sweep"
done_testing
