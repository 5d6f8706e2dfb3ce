#!/usr/bin/env bash
# What the roles of `install --print-grants` may do, each by itself: reader, user, operator, sweeper. On each server.
. "$(dirname "$0")/cli.sh"

base=roles_$$

# as ROLE: ROWLOCK_URL is of the role.
as() { ROWLOCK_URL=$(sed -E "s|//[^@/]*@|//${base}_$1@|" <<<"$whole"); }

# in_shell: statements in the server's own client, as the user of ROWLOCK_URL. An error ends it.
in_shell() {
    local user=${ROWLOCK_URL#*//}
    case $db in
        postgres) psql -qAtX -v ON_ERROR_STOP=1 "${ROWLOCK_URL%%\?*}" ;;
        mysql) mariadb --no-defaults --socket="$ROWLOCK_TEST_MYSQL_DIR/s.sock" --user="${user%%@*}" -N ${base:+"$base"} ;;
    esac
}
dba() { ROWLOCK_URL=$whole in_shell; }

make_roles() {
    local role
    sql_client <<<"CREATE DATABASE $base;"
    case $db in
        postgres) for role in reader user operator sweeper; do echo "CREATE ROLE ${base}_$role LOGIN;"; done ;;
        mysql) echo "CREATE USER ${base}_reader, ${base}_user, ${base}_operator, ${base}_sweeper@localhost;" ;;
    esac | sql_client
}

grant() {
    local role host
    for role in reader user operator sweeper; do
        host=
        [ "$db$role" != mysqlsweeper ] || host=@localhost
        rl install --url "$whole" --print-grants --role $role --user "${base}_$role$host"
        [ "$status" = 0 ] && dba <<<"$out" || return
    done
}

naming() {
    if [ "$db" = postgres ]; then
        rl install --url "$whole" --print-grants --user 'x; ROLLBACK; -- 語'
        sql_client <<<'CREATE ROLE "x; ROLLBACK; -- 語";'
        PGCLIENTENCODING=GBK holds "a user's name does not leave its quotes" dba <<<"$out"
    else
        sql_client <<<'CREATE DATABASE `a``b`;'
        errs "a database's name that would leave its quotes" 64 "contain no quote" install --url "${whole%/*}/a%60b" --print
        rl install --url "$whole" --print-grants --user nobody
        has "a user who is not there is not made" "$(dba <<<"SET sql_mode = ''; $out" 2>&1)" "ERROR"
    fi
}

installing() {
    local nowhere='' role
    # Without it the user cannot connect.
    [ "$db" = postgres ] || sql_client <<<"GRANT SELECT ON $base.* TO ${base}_reader"
    as reader
    errs "a role that may create nothing is told to ask a DBA" 77 'let a DBA run what `rowlock install --print` prints' install
    exits "a role that may create nothing prints what installs" 0 install --print
    [ "$db" = mysql ] || nowhere='SET search_path = pg_temp;'
    base='' holds "a DBA runs it in the server's shell" dba <<<"$nowhere$out"
    prints "the tables are fit for locks, as if the library had made them" 0 "as rowlock makes them" check --url "$whole"
    exits "install has nothing to do" 0 install --url "$whole"
    if [ "$db" = postgres ]; then
        prints "a role that may not even read is told what to grant" 1 "--print-grants" check
        errs "by install too" 77 "--print-grants" install
    else
        sql_client <<<"REVOKE SELECT ON $base.* FROM ${base}_reader"
    fi
    holds "what --print-grants prints runs" grant
    naming
    errs "a user's name with a quote" 64 "no quote" install --url "$whole" --print-grants --user 'a"b'
    errs "a role alone installs nothing" 64 "belong to --print-grants" install --url "$whole" --role reader
    errs "a host without a user" 64 "1 to 255 bytes" install --url "$whole" --print-grants --user @localhost
    for role in owner '' what: 'user operator' ' ' use; do
        errs "another role: '$role'" 64 "reader, user, operator or sweeper" install --url "$whole" --print-grants --user a --role "$role"
    done
}

locking() {
    local role
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
}

reading() {
    as reader
    prints "reader: list, reader: sees the locks" 0 "kept by user" list
    exits "reader: show" 0 show "kept by user"
    exits "reader: list waiters" 0 list --waiters
    prints "reader: metrics" 0 'rowlock_lock_held{name="kept by user"} 1' metrics --match 'kept*'
    prints "reader: check finds nothing bad, reader: and warns that this role may only read" 0 "may only read" check
    exits "reader: acquire is denied" 77 acquire x --owner me
    exits "reader: break is denied" 77 break "kept by user"
    exits "reader: raise-tokens is denied" 77 raise-tokens
    [ "$db" = postgres ] || has "reader: a transaction of its own can stop grants" "$(in_shell <<<"
START TRANSACTION; SELECT token FROM rowlock_tokens LOCK IN SHARE MODE;
\! $command acquire 'one of user' -n --url '$whole' --owner me || echo status \$?")" "status 75"
}

without() { # without PRIVILEGE TABLE
    dba <<<"REVOKE $1 ON rowlock_$2 FROM ${base}_user"
    exits "user: check sees that it may not $1 in $2" 1 check
    dba <<<"GRANT $1 ON rowlock_$2 TO ${base}_user"
}

using_and_operating() {
    local table
    as user
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
    exits "operator: raise-tokens" 0 raise-tokens --new-identity
    exits "operator: sweep, with counters and keys" 0 sweep --older-than 0 --idle 1ms --once-older-than 1ms
}

# Here an account needs a privilege to see and to make routines.
upgrading_mysql() {
    local role
    for role in reader user; do
        as $role
        errs "$role may not make routines, so what an upgrade would make is not told" 77 \
            "ask as the account that installed, or with its privileges" upgrade --dry-run
    done
    as operator
    gives "an operator sees that nothing is missing" 0 "There is nothing to do." upgrade --dry-run
    dba <<<"GRANT CREATE ROUTINE, ALTER ROUTINE ON $base.* TO ${base}_operator"
    gives "so does one that may make routines" 0 "There is nothing to do." upgrade --dry-run
    dba <<<"DROP PROCEDURE rowlock_break"
    gives "also what is missing" 0 "to do: make routine rowlock_break" upgrade --dry-run
    gives "and makes it" 0 $'done: make routine rowlock_break\nThe tables are upgraded.' upgrade
    dba <<<"REVOKE CREATE ROUTINE, ALTER ROUTINE ON $base.* FROM ${base}_operator"
    dba <<<"CREATE DEFINER = ${base}_sweeper@localhost EVENT rowlock_housekeeping ON SCHEDULE EVERY 1 DAY DISABLE
        DO CALL rowlock_housekeeping(30, 30)"
    prints "an operator's check sees that an event does not run" 0 \
        "WARN  event              rowlock_housekeeping, disabled on this server" check
}

# keeps_house ROLE "what holds" ANSWER: of a lock that is over and an old key.
keeps_house() {
    as operator
    rl acquire "over soon" --owner me
    rl run --once "an old key" "an old job" -- true
    dba <<<"UPDATE rowlock_once SET changed = 1; UPDATE rowlock_locks SET expires = 1 WHERE name = 'over soon'"
    as "$1"
    has "$1: $2" "$(in_shell <<<'CALL rowlock_housekeeping(1, 1)' 2>&1)" "$3"
}

housekeeping() {
    local denied="permission denied" done="removed 1 locks, 0 tickets of dead waiters, 1 once keys"
    [ "$db" = postgres ] || denied="execute command denied" done=$'1\t0\t1\t'
    keeps_house reader "housekeeping is denied" "$denied"
    keeps_house user "housekeeping is denied" "$denied"
    keeps_house operator "housekeeping" "$done"
    keeps_house sweeper "housekeeping has removed all kinds of rows" "$done"
    # On the other servers it cannot log in from elsewhere.
    [ "$db" = postgres ] || return
    exits "sweeper: acquire is denied" 77 acquire x --owner me
    exits "sweeper: break is denied" 77 break "over soon"
}

# What a role could do by hand. Only the columns that its statements need.
may_not() { # may_not ROLE WHAT SQL
    as "$1"
    holds "$1: cannot $2 by hand" grep -qE 'permission denied|check constraint|command denied' <<<"$(in_shell <<<"$3" 2>&1)"
}

by_hand() {
    local change
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
}

in_a_schema_postgres() {
    dba <<<'CREATE SCHEMA locks'
    whole+="?rowlock_schema=locks&rowlock_prefix=job_"
    exits "install in a schema, with a prefix" 0 install --url "$whole"
    holds "what --print-grants prints runs there" grant
    as user
    exits "user: takes a lock there" 0 run "of a schema" -- true
    as reader
    exits "reader: lists there" 0 list
    exits "reader: takes none there" 77 run "of a schema" -- true
}

roles() {
    local whole
    own_server || return
    whole=$(url_of "$db")
    whole=${whole%/*}/$base
    make_roles
    installing
    locking
    reading
    using_and_operating
    [ "$db" = postgres ] || upgrading_mysql
    housekeeping
    by_hand
    [ "$db" = mysql ] || in_a_schema_postgres
}

for_each_database roles
done_testing
