#!/usr/bin/env bash
# What the roles of sql/postgres/install/grants.sql may do, each by itself: reader, user, operator, sweeper.
. "$(dirname "$0")/cli.sh"

url=${ROWLOCK_TEST_POSTGRES_URL:-}
# A pooler has users of its own.
case $url in *@127.0.0.1*) ;; *) url= ;; esac
if [ -z "$url" ] || [ -z "${ROWLOCK_TEST_POSTGRES_DIR:-}" ] || ! command -v psql >/dev/null; then
    echo "1..0 # SKIP no private PostgreSQL server, or no psql"
    exit 0
fi

db=postgres base=rowlock_roles
whole=${url%/*}/$base
as() { # as ROLE: ROWLOCK_URL is of the role
    ROWLOCK_URL=$(sed -E "s|//[^@/]*@|//rowlock_test_$1@|" <<<"$whole")
    export ROWLOCK_URL
}

drop() {
    psql -qX "$url" 2>/dev/null <<SQL
SET client_min_messages = warning;
DROP DATABASE IF EXISTS $base;
DROP ROLE IF EXISTS rowlock_test_reader, rowlock_test_user, rowlock_test_operator, rowlock_test_sweeper;
SQL
}

drop
for role in reader user operator sweeper; do psql -qX "$url" -c "CREATE ROLE rowlock_test_$role LOGIN"; done
psql -qX "$url" -c "CREATE DATABASE $base"
as reader
errs "a role that may create nothing is told to ask a DBA" 77 'let a DBA run what `rowlock install --print` prints' install
exits "a role that may create nothing prints what installs" 0 install --print
unset ROWLOCK_URL
holds "a DBA runs it in psql" psql -qX -v ON_ERROR_STOP=1 -c 'SET search_path = pg_temp' -f - "$whole" <<<"$out"
prints "the tables are fit for locks, as if the library had made them" 0 "as rowlock makes them" check --url "$whole"
exits "install has nothing to do" 0 install --url "$whole"
as reader
prints "a role that may not even read is told what to grant" 1 "grants.sql" check
errs "by install too" 77 "grants.sql" install
unset ROWLOCK_URL
grant() { # grant OPTION…
    psql -qX -v ON_ERROR_STOP=1 -v reader=rowlock_test_reader -v user=rowlock_test_user -v operator=rowlock_test_operator \
        -v sweeper=rowlock_test_sweeper -f sql/postgres/install/grants.sql "$@" "${whole%%\?*}"
}
holds "grants.sql runs" grant

for role in user operator; do
    as $role
    exits "$role: check" 0 check
    exits "$role: acquire a new name" 0 acquire "by $role" --owner me
    exits "$role: list" 0 list
    exits "$role: renew" 0 renew "by $role" --owner me --token 1
    exits "$role: wait in vain" 75 acquire "by $role" --owner other -w 200ms
    exits "$role: release" 0 release "by $role" --owner me --token 1
    exits "$role: run a job once" 0 run --once "key of $role" "job of $role" -- true
    exits "$role: shared and counted" 0 run -s "shared by $role" -- true
    exits "$role: several" 0 run "one of $role" "two of $role" -- true
    exits "$role: a lock that stays" 0 acquire "kept by $role" --owner me
done

as reader
prints "reader: list, reader: sees the locks" 0 "kept by user" list
exits "reader: show" 0 show "kept by user"
exits "reader: list waiters" 0 list --waiters
prints "reader: metrics" 0 'rowlock_lock_held{name="kept by user"} 1' metrics --match 'kept*'
prints "reader: check finds nothing bad, reader: and warns that this role may only read" 0 "may only read" check
exits "reader: acquire is denied" 77 acquire x --owner me
exits "reader: break is denied" 77 break "kept by user"

as user
without() { # without PRIVILEGE TABLE
    psql -qX "$whole" -c "REVOKE $1 ON rowlock_$2 FROM rowlock_test_user"
    exits "user: check sees that it may not $1 in $2" 1 check
    psql -qX "$whole" -c "GRANT $1 ON rowlock_$2 TO rowlock_test_user"
}
for table in locks waiters tokens fences once walks; do
    without INSERT $table
    without UPDATE $table
done
for table in locks waiters once walks; do without DELETE $table; done
exits "user: check finds nothing that lacks any more" 0 check
exits "user: break is denied" 77 break "kept by user"
exits "user: raise-tokens is denied" 77 raise-tokens
exits "user: the lock stands" 0 show "kept by user"

as operator
exits "operator: break" 0 break "kept by user"
exits "operator: raise-tokens" 0 raise-tokens
exits "operator: sweep, with counters and keys" 0 sweep --older-than 0 --idle 1ms --once-older-than 1ms

keep_house() { psql -qX -v ON_ERROR_STOP=1 -c 'CALL rowlock_housekeeping(1, 1)' "$ROWLOCK_URL" 2>"$work/err"; }
rl acquire "over soon" --owner me
rl run --once "an old key" "an old job" -- true
psql -qX "$whole" -c "UPDATE rowlock_once SET changed = 1; UPDATE rowlock_locks SET expires = 1 WHERE name = 'over soon'"
for role in reader user; do
    as $role
    holds "$role: housekeeping is denied" eval '! keep_house'
    has "$role: by its privileges" "$(<"$work/err")" "permission denied"
done
as sweeper
holds "sweeper: housekeeping" keep_house
has "sweeper: it has removed all kinds of rows" "$(<"$work/err")" "removed 1 locks, 0 tickets of dead waiters, 1 once keys"
exits "sweeper: acquire is denied" 77 acquire x --owner me
exits "sweeper: break is denied" 77 break "over soon"

# What a role could do by hand. Only the columns that its statements need.
may_not() { # may_not ROLE WHAT SQL
    as "$1"
    psql -qX -v ON_ERROR_STOP=1 -c "$3" "$ROWLOCK_URL" 2>"$work/err"
    holds "$1: cannot $2 by hand" grep -qE 'permission denied|check constraint' "$work/err"
}
for change in compat=99 version=99 identity=identity token_floor=0 id=2; do
    may_not user "set $change" "UPDATE rowlock_meta SET $change"
    [ $change = token_floor=0 ] || may_not sweeper "set $change" "UPDATE rowlock_meta SET $change"
done
may_not operator "stop everybody" "UPDATE rowlock_meta SET compat = 99"
for change in "owner = 'me'" "token = 99" "expires = 0" "name = 'x'"; do
    may_not sweeper "set $change of a lock" "UPDATE rowlock_locks SET $change"
done
may_not sweeper "take a lock" "INSERT INTO rowlock_locks (name) VALUES ('x')"
may_not sweeper "set a token back" "UPDATE rowlock_tokens SET token = 0"

# Another schema and another prefix.
whole+="?rowlock_schema=locks&rowlock_prefix=job_"
psql -qX "${whole%%\?*}" -c 'CREATE SCHEMA locks'
exits "install in a schema, with a prefix" 0 install --url "$whole"
holds "grants.sql runs there" grant -v schema=locks -v prefix=job_
as user
exits "user: takes a lock there" 0 run "of a schema" -- true
as reader
exits "reader: lists there" 0 list
exits "reader: takes none there" 77 run "of a schema" -- true
drop
done_testing
