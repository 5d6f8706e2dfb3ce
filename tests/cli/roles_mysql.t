#!/usr/bin/env bash
# The roles of sql/mysql/install/grants.sql: each verb goes well for those who may, and is refused to all others.
. "$(dirname "$0")/../lib/tap.sh"
if [ -z "${ROWLOCK_TEST_MYSQL_DIR:-}" ]; then
    echo "1..0 # SKIP no MySQL server of our own"
    exit 0
fi
command=$ROWLOCK_TEST_COMMAND
admin() { "$(command -v mariadb || command -v mysql)" --no-defaults --socket="$ROWLOCK_TEST_MYSQL_DIR/s.sock" --user=root "$@"; }
users="'roles_watch'@'%', 'roles_app'@'%', 'roles_ops'@'%', 'roles_sweep'@'localhost'"
cleanup() { admin -e "DROP DATABASE IF EXISTS roles_db; DROP USER IF EXISTS $users"; }
trap cleanup EXIT
cleanup
admin -e "CREATE DATABASE roles_db; CREATE USER $users"
rl() { # rl ROLE VERB…
    local where=${ROWLOCK_TEST_MYSQL_URL#*@}
    timeout 60 "$command" --url "mysql://roles_$1@${where%%/*}/roles_db" "${@:2}"
}
as() { # as ROLE VERB…: its exit status.
    rl "$@" >/dev/null 2>&1
    echo $?
}
admin -e "GRANT SELECT ON roles_db.* TO 'roles_watch'@'%'"
rl watch install --print >"$TMPDIR/install.sql"
ok "a user that may only read prints what installs" test -s "$TMPDIR/install.sql"
ok "a DBA runs it in the server's shell" admin -e "source $TMPDIR/install.sql"
admin -e "REVOKE SELECT ON roles_db.* FROM 'roles_watch'@'%'"
found=$("$command" --url "${ROWLOCK_TEST_MYSQL_URL%/*}/roles_db" check)
is "the tables are fit for locks" $? 0
is "as if the library had made them" "$(grep -c '^ok *objects *as rowlock makes them' <<<"$found")" 1
sed "s/appdb/roles_db/; s/'watch'/'roles_watch'/; s/'app'/'roles_app'/; s/'ops'/'roles_ops'/; s/'sweep'/'roles_sweep'/" sql/mysql/install/grants.sql | admin

denied=77

is "a reader lists" "$(as watch list)" 0
is "and shows" "$(as watch show x)" 1
is "and checks" "$(as watch check)" 0
is "and takes no lock" "$(as watch run x -- true)" $denied
is "a user takes a lock" "$(as app run x -- true)" 0
is "waits for one" "$(as app run -w 5s x -- true)" 0
is "takes several" "$(as app run x y -- true)" 0
is "does a thing once" "$(as app run z --once a -- true)" 0
is "checks the database" "$(as app check)" 0
for role in watch app; do
    is "$role does not break" "$(as $role break x --if-token 1)" $denied
    is "$role raises no tokens" "$(as $role raise-tokens)" $denied
done
without() { # without PRIVILEGE TABLE
    admin -e "REVOKE $1 ON roles_db.rowlock_$2 FROM 'roles_app'@'%'"
    is "check sees that a user may not $1 in $2" "$(as app check)" 1
    admin -e "GRANT $1 ON roles_db.rowlock_$2 TO 'roles_app'@'%'"
}
for table in locks waiters tokens fences once walks; do
    without INSERT $table
    without UPDATE $table
done
for table in locks waiters once walks; do without DELETE $table; done
is "check finds nothing that lacks any more" "$(as app check)" 0
is "an operator sweeps" "$(as ops sweep --idle 1ms)" 0
is "finds nothing to break" "$(as ops break x --if-token 1)" 1
is "raises tokens" "$(as ops raise-tokens --new-identity)" 0
is "and takes locks" "$(as ops run x -- true)" 0
for role in watch app; do
    found=$(rl $role upgrade --dry-run 2>&1)
    is "$role may not make routines, so what an upgrade would make is not told" "$? ${found##*: }" \
        "$denied ask as the account that installed, or with its privileges"
done
is "an operator sees that nothing is missing" "$(rl ops upgrade --dry-run)" "There is nothing to do."
admin -e "GRANT CREATE ROUTINE, ALTER ROUTINE ON roles_db.* TO 'roles_ops'@'%'"
is "so does one that may make routines" "$(rl ops upgrade --dry-run)" "There is nothing to do."
admin -e "DROP PROCEDURE roles_db.rowlock_break"
is "also what is missing" "$(rl ops upgrade --dry-run)" "to do: make routine rowlock_break"
is "and makes it" "$(rl ops upgrade)" $'done: make routine rowlock_break\nThe tables are upgraded.'
admin -e "REVOKE CREATE ROUTINE, ALTER ROUTINE ON roles_db.* FROM 'roles_ops'@'%'"
keep_house() { # keep_house ROLE: how many keys it has removed
    rl ops run x --once "$1" -- true
    admin -e "UPDATE roles_db.rowlock_once SET changed = 1"
    "$(command -v mariadb || command -v mysql)" --no-defaults --socket="$ROWLOCK_TEST_MYSQL_DIR/s.sock" \
        --user="roles_$1" -N -e "CALL rowlock_housekeeping(1, 1)" roles_db 2>&1 | cut -f 3
}
is "an operator keeps house in the database" "$(keep_house ops)" 2
is "a sweeper too" "$(keep_house sweep)" 1
admin -D roles_db -e "CREATE DEFINER = 'roles_sweep'@'localhost' EVENT rowlock_housekeeping ON SCHEDULE EVERY 1 DAY DISABLE
    DO CALL rowlock_housekeeping(30, 30)"
is "an operator's check sees that an event does not run" \
    "$(rl ops check | grep -o '^WARN *event *rowlock_housekeeping, disabled on this server')" \
    "WARN  event              rowlock_housekeeping, disabled on this server"
for role in watch app; do
    has=$(keep_house $role)
    is "$role may not" "${has#*execute command denied}" " to user 'roles_$role'@'%' for routine 'roles_db.rowlock_housekeeping'"
done

# Only the columns that its statements need.
by_hand() { "$(command -v mariadb || command -v mysql)" --no-defaults --socket="$ROWLOCK_TEST_MYSQL_DIR/s.sock" --user="roles_$1" -e "$2" roles_db 2>&1; }
for role in app sweep; do
    for change in compat=99 version=99 identity=identity id=2; do
        ok "$role cannot set $change by hand" grep -q 'UPDATE command denied' <<<"$(by_hand $role "UPDATE rowlock_meta SET $change")"
    done
done
ok "an operator cannot stop everybody" grep -q 'UPDATE command denied' <<<"$(by_hand ops "UPDATE rowlock_meta SET compat = 99")"
ok "a sweeper cannot change a lock" grep -q 'UPDATE command denied' <<<"$(by_hand sweep "UPDATE rowlock_locks SET owner = 'me'")"
done_testing
