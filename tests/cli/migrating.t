#!/usr/bin/env bash
# docs/MIGRATING.md: the traps of flock, GET_LOCK and pg_advisory_lock, and the tests that it names.
. "$(dirname "$0")/cli.sh"

# A job that says it has begun, with a process in the background that outlives it.
leaves='sleep 300 & echo $! >"$0"'

background_process() {
    flock -n "$work/file" sh -c "$leaves" "$work/left"
    flock -n "$work/file" true
    same "flock: a process that the job leaves behind keeps the lock" "$?" 1
    kill "$(cat "$work/left")"
    rl run background -- sh -c "$leaves" "$work/left"
    exits "a process that the job leaves behind does not keep the lock" 0 run -n background true
    kill "$(cat "$work/left")"
}

statuses() {
    flock "$work/file" sh -c 'echo $$ >"$0"; exec sleep 300' "$work/job" &
    pid=$!
    until_true test -s "$work/job"
    flock -n "$work/file" true
    same "flock: a held lock is 1, like a command that fails" "$?" "$(flock -n "$work/other" false; echo $?)"
    kill "$pid"
    wait "$pid" 2>/dev/null
    holds "flock: TERM leaves its command running" kill -0 "$(cat "$work/job")"
    flock -n "$work/file" true
    same "flock: which keeps the lock" "$?" 1
    kill "$(cat "$work/job")"
    rm -f "$work/job"
    rl acquire status --owner another --ttl 1h
    rl run -n status false
    held=$status
    rl break status
    rl run -n status false
    same "a held lock is told from a command that fails" "$held $status" "75 1"
    begun "$work/job" run status -- sh -c 'echo $$ >"$0"; exec sleep 300' "$work/job"
    end "$pid"
    holds "TERM ends the command too" until_true gone "$(cat "$work/job")"
}

away() {
    errs "-E 0 does not hide a database that is away" 69 "" run -n -E 0 --url postgresql://nobody@127.0.0.1:1/nowhere x true
}

# What chronic does.
chronically() {
    local output status=0
    output=$("$@" 2>&1) || status=$?
    [ $status = 0 ] || printf '%s\n' "$output"
    return $status
}

wrappers() {
    printf '#!/bin/sh\noutput=$("$@" 2>&1) || { echo "$output"; exit 1; }\n' >"$work/wrapper"
    chmod +x "$work/wrapper"
    rm -f "$work/job"
    begun "$work/job" run wrapped -- "$work/wrapper" sh -c 'echo $$ >"$0"; exec sleep 300' "$work/job"
    end "$pid"
    holds "a wrapper in between does not keep TERM from the job" until_true gone "$(cat "$work/job")"
    rl acquire chronic --owner another --ttl 1h
    same "a wrapper outside is quiet on the host that does not run" \
        "$(chronically "$command" run -n -E 0 chronic true; echo $?)" 0
    rl break chronic
    # Time: the next renewal, after 5 s, finds the loss. A machine may stand still for 8 s more, as --grace is short.
    out=$(chronically "$command" run --ttl 15s --grace 1s chronic -- sh -c '"$0" break chronic; sleep 300' "$command")
    same "a wrapper outside passes 76 on" "$?" 76
    has "and tells of a lock that was lost" "$out" "the lock was lost"
}

# cut SESSIONS: ends those of the sessions for which this condition holds.
cut() {
    case $db in
        postgres) sql_client <<<"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND $1;" ;;
        mysql)
            sql_client <<<"SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE $1;" >"$work/kills"
            sql_client --force <"$work/kills"
            ;;
    esac >/dev/null 2>&1
}

# session_lock TAKE TRY NO YES: what another session's TRY answers before the connection is cut, and after.
session_lock() {
    local id
    start_client
    case $db in
        postgres) say "SELECT 'pid = ' || pg_backend_pid()" ;;
        mysql) say "SELECT CONCAT('id = ', CONNECTION_ID())" ;;
    esac
    id=$said
    say "SELECT $1"
    same "$1: another does not get it" "$(sql_client <<<"SELECT $2")" "$3"
    cut "$id"
    holds "$1: but as soon as the connection is cut" until_true taken_by_another "$2" "$4"
    kill "$CLIENT_PID" 2>/dev/null
    wait "$CLIENT_PID" 2>/dev/null
}
taken_by_another() { [ "$(sql_client <<<"SELECT $1")" = "$2" ]; }

session_locks() {
    local user=rowlock_cut_$$ make drop sessions of_user url=$ROWLOCK_URL
    case $db in
        sqlite) return ;;
        postgres)
            make="CREATE ROLE $user SUPERUSER LOGIN" drop="DROP ROLE $user" sessions=pg_stat_activity of_user="usename = '$user'"
            session_lock "pg_advisory_lock(4711)" "pg_try_advisory_lock(4711)" f t
            same "pg_advisory_lock: ROLLBACK does not release it" "$(sql_client <<<"BEGIN; SELECT pg_try_advisory_lock(4712); ROLLBACK;
                SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4712 AND pid = pg_backend_pid();")" "t
1"
            ;;
        mysql)
            make="CREATE USER $user; GRANT ALL ON *.* TO $user" drop="DROP USER $user"
            sessions=information_schema.processlist of_user="user = '$user'"
            same "GET_LOCK: a name is one for all databases" \
                "$(sql_client <<<"SELECT GET_LOCK('shared', 0); USE information_schema; SELECT IS_FREE_LOCK('shared')")" "1
0"
            session_lock "GET_LOCK('migrating', 0)" "GET_LOCK('migrating', 0)" 0 1
            ;;
    esac
    sql_client <<<"$make"
    ROWLOCK_URL=$(sed -E "s|//[^@/]*@|//$user@|" <<<"$url")
    begun "$work/kept" run kept -- sh -c 'echo begun >"$0"; until [ -e "$0.go" ]; do sleep 0.05; done' "$work/kept"
    holds "a holder has connections" test "$(sql_client <<<"SELECT count(*) FROM $sessions WHERE $of_user")" -gt 0
    cut "$of_user"
    exits "a holder whose connections are cut keeps its lock" 75 run -n kept true
    touch "$work/kept.go"
    ends "and its job goes through" 0 "$pid"
    ROWLOCK_URL=$url
    sql_client <<<"$drop"
}

# Each line of the tables names a test, and what it says there.
named() {
    local file sentence missing=
    while read -r file sentence; do
        sentence=${sentence#\"}
        grep -qF -- "${sentence%\"}" "tests/$file" || missing+=" $file: $sentence"
    done < <(grep '^|' docs/MIGRATING.md | grep -oE '`[a-z]+/[a-z_]+\.[ct]`( "[^"]*")? \|$' | sed 's/ |$//; s/`//g')
    is "what docs/MIGRATING.md names is in the tests" "$missing" ""
    is "each trap has a test" "$(awk -F '|' '/^\| (trap|\|)/ || /^\|  *\| / { next } /^\|-/ { table = NF == 5; next } /^\|/ && table && $4 !~ /`[a-z]+\/[a-z_]+\.[ct]`/' docs/MIGRATING.md)" ""
}

named
away
needs flock "the traps of flock" && for_each_database install_tables background_process statuses wrappers session_locks
done_testing
