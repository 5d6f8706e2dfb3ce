#!/usr/bin/env bash
# `rowlock run`: what its command gets, its status, how long it holds the lock, and a lost lease. On each database.
. "$(dirname "$0")/cli.sh"

# A job that says it has begun, and stays until it is ended.
stay='echo $$ >"$0.pid"; sleep 300 & echo $! >"$0.child"; echo began >"$0"; wait'

# begin NAME OPTION…: such a job in the background under the lock NAME. Sets $pid and $sign.
begin() {
    sign=$work/$1
    begun "$sign" run "${@:2}" "$1" -- sh -c "$stay" "$sign"
}

statuses() {
    silent "the status of the command is passed on: 0, and nothing is printed" 0 run st true
    exits "the status of the command is passed on: 1" 1 run st false
    exits "the status of the command is passed on: 75" 75 run st sh -c 'exit 75'
    exits "the status of the command is passed on: 255" 255 run st sh -c 'exit 255'
    exits "a command that a signal ended is 128 plus the signal" 137 run st sh -c 'kill -9 $$'
    errs "a command that is not there is 127, which is said" 127 "not-there': No such file" run st "$work/not-there"
    exits "one that is not on the path is 127 as well" 127 run st no-such-command-anywhere
    : >"$work/not-executable"
    errs "one that cannot be executed is 126, which is said, too" 126 "Permission denied" run st "$work/not-executable"
    exits "a folder is 126" 126 run st "$work"
    exits "nothing of all that leaves the lock behind" 0 run -n st true
    exits "a name that is not acceptable is 64" 64 run "" true
}

environment() {
    export ROWLOCK_NAME=old ROWLOCK_TOKEN=old ROWLOCK_OWNER=old ROWLOCK_EXPIRES_AT=old
    exits "the command runs" 0 run "an 'odd' name" --owner "o w" -- sh -c \
        'printf "%s\n" "$ROWLOCK_NAME" "$ROWLOCK_OWNER" "$ROWLOCK_TOKEN" "$ROWLOCK_EXPIRES_AT" "$ROWLOCK_URL"
         "$0" verify "$ROWLOCK_NAME" && echo verified; "$0" show --json "$ROWLOCK_NAME"' "$command"
    unset ROWLOCK_NAME ROWLOCK_TOKEN ROWLOCK_OWNER ROWLOCK_EXPIRES_AT
    local lines shown
    mapfile -t lines <<<"$out"
    shown=$(tail -n +7 <<<"$out")
    same "ROWLOCK_NAME is the name" "${lines[0]}" "an 'odd' name"
    same "ROWLOCK_OWNER is the owner" "${lines[1]}" "o w"
    same "ROWLOCK_TOKEN is the token in the table" "${lines[2]}" "$(json '$d->{grants}[0]{token}' "$shown")"
    same "ROWLOCK_EXPIRES_AT is the end of the lease in the table" "${lines[3]/./}" \
        "$(json '$d->{grants}[0]{expires_us}' "$shown")"
    same "ROWLOCK_URL stays" "${lines[4]}" "$ROWLOCK_URL"
    same "the URL of --url goes before it, for the command too" "$(env ROWLOCK_URL=sqlite:/none/x.db "$command" --url "$ROWLOCK_URL" \
        run "an 'odd' name" -- sh -c '"$0" verify "$ROWLOCK_NAME"; echo $?' "$command" 2>&1)" 0
    same "and they are enough to verify the grant" "${lines[5]}" "verified"
    same "the table names the command" "$(json '$d->{grants}[0]{program}' "$shown")" "sh"
}

# Threads of client libraries read the environment whenever they connect, and setenv() frees what they read.
own_environment() {
    cat >"$work/unchanged.c" <<'END'
#include <stdlib.h>
int setenv(const char *name, const char *value, int overwrite) { abort(); }
int unsetenv(const char *name) { abort(); }
END
    ok "a library that lets no program change its environment" \
        "${CC:-cc}" -shared -fPIC -o "$work/unchanged.so" "$work/unchanged.c"
    LD_PRELOAD=$work/unchanged.so ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
        exits "the command's environment is not that of rowlock, which does not change" 0 \
        run own -- sh -c 'test "$ROWLOCK_NAME" = own'
}

# ignored COMMAND…: the signals that COMMAND's process ignores. The two above 31 are the C library's own.
ignored() {
    local mask
    mask=$("$@" grep SigIgn /proc/self/status | tr -dc '0-9a-f')
    echo $((0x$mask & 0x7fffffff))
}

# What the command can see of files and streams.
files() {
    errs "standard error is the command's" 0 "err" run io -- sh -c 'echo err >&2'
    same "so are standard input and output" "$(echo through | "$command" run io cat)" "through"
    counts "no file, pipe or socket of the lock or its keeper is left open in it" 0 "$(sh -c 'ls -l /proc/$$/fd; :' | grep -c -- '->')" \
        '->' run io -- sh -c 'ls -l /proc/$$/fd; :'
    gives "but a file that the caller opened for it is" 0 "inherited" run io -- sh -c 'cat <&7' 7< <(echo inherited)
    same "no signal is ignored that was not" "$(ignored "$command" run io)" "$(ignored env)"
    "$command" run io -- sh -c '[ ! -e /proc/self/fd/1 ]' >&-
    same "a closed standard output stays closed, and is no error" $? 0
}

rivals() {
    local i jobs=() times=3
    [ -z "${ROWLOCK_TEST_LONG:-}" ] || times=10
    begin rival
    exits "while one runs, another is told with -n" 75 run -n rival true
    exits "or after it has waited" 75 run -w 300ms rival true
    exits "with the status it asked for" 0 run -n -E 0 rival sh -c 'exit 9'
    exits "and another name is free" 0 run -n other-rival true
    "$command" run rival touch "$work/second" 2>/dev/null &
    i=$!
    until_true queued rival
    holds "a waiter does not run" test ! -e "$work/second"
    kill "$(cat "$sign.child")"
    ends "the first ends" 0 "$pid"
    ends "and the other runs" 0 $i
    holds "its command" test -e "$work/second"

    echo 0 >"$work/counter"
    for i in 1 2 3 4 5 6 7 8; do
        (for _ in $(seq $times); do
            "$command" run counter -- sh -c 'n=$(cat "$0"); echo $((n + 1)) >"$0"' "$work/counter" ||
                echo "status $?"
        done) >"$work/counter.$i" 2>&1 &
        jobs+=($!)
    done
    wait "${jobs[@]}"
    same "8 processes that add $times times 1 to a file make 8 times that" "$(cat "$work/counter")" $((8 * times))
    same "and none of them has anything to complain about" "$(grep -h ^status "$work"/counter.?)" ""
}

holding() {
    exits "with --min-hold the lock outlives a short command" 0 run --min-hold 100ms min -- true
    "$command" run --min-hold 1h min2 -- sh -c 'echo $$ >"$0"' "$work/min2" &
    pid=$!
    until_true test -s "$work/min2"
    until_true gone "$(cat "$work/min2")"
    exits "and is held meanwhile" 75 run -n min2 true
    killed "a signal ends that" TERM 143 $pid
    holds "and the lock is free" free min2
    # The run finds the end of the job and the signal at the same moment.
    begun "$work/min3" run --min-hold 2m --ttl 60s min3 -- sh -c 'echo $$ >"$0"; until [ -e "$0.go" ]; do sleep 0.05; done' "$work/min3"
    kill -STOP "$pid"
    touch "$work/min3.go"
    until_true gone "$(<"$work/min3")"
    kill -TERM "$pid"
    killed "a signal that comes when the command has just ended ends the hold" CONT 143 "$pid"
    errs "with --max-hold a command is ended, and told why" 76 "--max-hold" run --max-hold 300ms max -- sleep 300
    exits "the lock is free afterwards" 0 run -n max true
    exits "one that does not heed SIGTERM is killed after --grace" 76 \
        run --max-hold 200ms --grace 200ms max -- sh -c 'trap "" TERM; sleep 300'
    mkfifo "$work/full"
    exec 8<>"$work/full"
    dd if=/dev/zero of=/dev/fd/8 oflag=nonblock bs=4k 2>/dev/null
    timeout -k 1 60 "$command" run --max-hold 200ms --grace 200ms max -- sh -c 'trap "" TERM; exec sleep 300' 2>&8
    same "also when no program reads what is said about it" $? 76
    exec 8<&-
}

begin_staying() {
    as=lost begin lost --ttl 60s
    lost=$pid
    rl break lost
    as=renewed begin renewed --ttl 60s
    renewed=$pid
    as=told start run --stall 10s --ttl 30s told -- sh -c 'for i in $(seq 25); do echo >&"$ROWLOCK_PROGRESS_FD"; sleep 0.5; done; exit 7'
    told=$pid
    as=held start run --stall 10s --ttl 30s --min-hold 12s held -- sh -c 'exit 7'
    held=$pid
}

# What a run said, without the two lines about a machine that stood still at a renewal.
said() { grep -v ': the database has not answered yet$\|: done after all$' "$work/$1.err"; }

# What began first: a lease of 60 s is renewed after a third of it, and the silence of 10 s would have been told.
staying() {
    ends "a job whose lock was broken is ended" 76 "$lost"
    has "with the reason" "$(cat "$work/lost.err")" "the lock was lost"
    holds "the command is gone" until_true gone "$(cat "$work/lost.pid")"
    holds "and so is its child" until_true gone "$(cat "$work/lost.child")"
    until_true renewed renewed
    holds "a lease is renewed for as long as the command runs" kill -0 "$renewed"
    holds "and it has not run out" test "$(json '$d->{grants}[0]{remaining_ms}')" -gt 0
    killed "it ends when told" TERM 143 "$renewed"
    ends "a job that tells progress goes on" 7 "$told"
    same "and nothing is said" "$(said told)" ""
    ends "and one that has ended need not tell for --min-hold" 7 "$held"
    same "for which nothing is said" "$(said held)" ""
}

# rowlock is stopped until another client has had the lock. Its job ends meanwhile.
paused() {
    sign=$work/paused
    begun "$sign" run paused --ttl 1s -- sh -c 'echo $$ >"$0.pid"; echo >"$0"; until [ -e "$0.go" ]; do sleep 0.05; done' "$sign"
    kill -STOP "$pid"
    exits "when its lease is over another client has the lock" 0 run -w 60s paused true
    touch "$sign.go"
    holds "the job of a run that is stopped ends" until_true ended "$(cat "$sign.pid")"
    kill -CONT "$pid"
    ends "then the run knows that its lock was lost" 76 "$pid"
}

# A process that its parent has not collected has ended.
ended() { gone "$1" || [[ $(ps -o stat= -p "$1") == Z* ]]; }

losing() {
    local stubborn
    sign=$work/stubborn
    begun "$sign" run stubborn --ttl 1500ms --grace 300ms -- sh -c 'trap "" TERM; '"$stay" "$sign"
    rl break stubborn
    ends "so is one that does not heed SIGTERM" 76 "$pid"
    stubborn=$(cat "$sign.pid" "$sign.child" | tr '\n' ' ')
    for pid in $stubborn; do holds "none of its processes is left" until_true gone "$pid"; done

    sign=$work/orphan
    start run orphan --ttl 1500ms --grace 300ms -- sh -c \
        '(trap "" TERM; sleep 300 & echo $! >"$0.child"; wait) & trap "exit 0" TERM; echo x >"$0"; wait' "$sign"
    until_true test -s "$sign.child"
    rl break orphan
    ends "a child that outlives its parent's SIGTERM counts as well" 76 "$pid"
    holds "and is killed" until_true gone "$(cat "$sign.child")"

    exits "a lock that is found lost at the end is 76, with any status of the command" 76 run late -- \
        sh -c '"$0" break late >/dev/null; exit 5' "$command"
    has "which is said together with that" "$err" "exit status 5"
}

# The database's clock jumps while a job runs: in a database of its own, a function of ours stands in for it.
jumping() {
    local base url
    [ "$db" = postgres ] || return 0
    base=$(url_of postgres)
    url=${base%/*}/clock_$$
    psql -qAtX "$base" -c "CREATE DATABASE clock_$$"
    psql -qAtX "$url" 2>&1 <<'END'
CREATE TABLE public.clock (ahead interval);
INSERT INTO public.clock VALUES ('0');
ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO true_clock;
CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.true_clock() + (SELECT ahead FROM public.clock)';
END
    local -x ROWLOCK_URL=$url
    rl install
    # Time: the next renewal, after 5 s, finds the jump. A machine may stand still for 9 s more, as --grace is short.
    begin jumping --ttl 15s --grace 300ms
    psql -qAtX "$url" -c "UPDATE clock SET ahead = '1 hour'"
    holds "a lease that ran out because the database's clock jumped is told" \
        until_true grep -q "the lease had run out" "$work/bg.err"
    psql -qAtX "$url" -c "UPDATE clock SET ahead = '0'"
    rl show jumping --json
    until_true renewed jumping "$(json '$d->{grants}[0]{renewals}')"
    same "once" "$(grep -c 'the lease had run out' "$work/bg.err")" 1
    killed "and the job goes on" TERM 143 "$pid"
    psql -qAtX "$base" -c "DROP DATABASE clock_$$"
}

# A job that is to tell progress. One that tells all the time runs beside the others: told.
stalling() {
    local tell='tell() { echo >&"$ROWLOCK_PROGRESS_FD"; }'
    exits "without --stall there is nothing to tell progress to" 0 run stall -- sh -c 'exit ${ROWLOCK_PROGRESS_FD:-0}'
    errs "one that stops telling is ended, with the reason" 76 "the job reported no progress for" \
        run --stall 500ms --ttl 1500ms --grace 300ms stall -- sh -c "$tell; tell; exec sleep 300"
    exits "its lock is released" 0 run -n stall true
    exits "so is one that cannot tell" 76 run --stall 500ms --ttl 1s --grace 200ms stall -- \
        sh -c 'eval "exec $ROWLOCK_PROGRESS_FD>&-"; exec sleep 300'
    errs "one that tells again before the end of its lease goes on, which is said" 7 "done after all" \
        run --stall 500ms --ttl 60s stall -- sh -c "$tell; until grep -q 'no progress' \"\$0\"; do sleep 0.1; done; until grep -q 'done after all' \"\$0\"; do
            tell; sleep 0.1; done; exit 7" "$work/err"
}

# As process number 1 of a container.
first_process() {
    local alone=(unshare --pid --fork --mount-proc --kill-child)
    can_do "run as process number 1" "${alone[@]}" true || return
    # Time: orphans that end later. The job waits until the last one has gone.
    out=$("${alone[@]}" "$command" run first -- timeout 60 sh -c 'sh -c "sleep 0.1 & sleep 0.2 &"
        while cat /proc/[0-9]*/stat 2>/dev/null | grep -q "(sleep) "; do sleep 0.1; done; echo "none is left"' 2>"$work/err")
    same "process number 1 ends with its command" $? 0
    same "and has collected the orphans meanwhile" "$out" "none is left"
    "${alone[@]}" "$command" run first -- sh -c 'kill -TERM $$' 2>/dev/null
    same "a signal that ends the command cannot end it, and its status says it" $? 143
}

# A run inside of a run.
nested() {
    errs "a run of the same name inside of it is refused, with the reason" 64 "run 'nest': a run around this command holds it" \
        run nest -- "$command" run nest true
    exits "one of several names, too" 64 run nest "other nest" -- "$command" run third "other nest" -- true
    exits "or under the same owner" 64 run --owner me nest -- "$command" run --owner me nest true
    exits "and one that would wait for a while" 64 run nest -- "$command" run -w 1s nest true
    exits "one that does not wait is told that it is busy" 75 run nest -- "$command" run -n nest true
    exits "another name is fine" 0 run nest -- "$command" run nest-2 true
    XDG_STATE_HOME=$work exits "so is the same name in another database" 0 run nest -- \
        env -u ROWLOCK_URL "$command" run -w 5s nest true
    exits "two shared ones get along" 0 run -s nest -- "$command" run -s nest true
    exits "a shared and an exclusive one do not" 64 run -s nest -- "$command" run nest true
    local stale
    rl run nest -- sh -c 'echo "$ROWLOCK_HELD"'
    stale=$out
    ROWLOCK_HELD=$stale exits "an environment that is out of date is no obstacle" 0 run -w 5s nest true
}

# Two or more runs around one that asks for a name again. Owners and names look like parts of the list.
nested_deep() {
    local odd=$'a\nnest) (6e657374:'
    errs "a run inside of two others is refused the name of the outermost, with the same reason" 64 \
        "run 'nest': a run around this command holds it" run nest -- "$command" run inner -- timeout 60 "$command" run nest true
    exits "one inside of three, too" 64 run third nest -- "$command" run inner -- \
        "$command" run "$odd" -- timeout 60 "$command" run nest true
    exits "and the name between them" 64 run nest -- \
        "$command" run --owner "$odd" "$odd" -- "$command" run inner -- timeout 60 "$command" run "$odd" true
    exits "other names are fine at any depth" 0 run --owner "$odd" nest -- \
        "$command" run "$odd" -- "$command" run inner -- "$command" run 6e657374 true
    XDG_STATE_HOME=$work exits "so is the same name in another database" 0 run nest -- "$command" run inner -- \
        env -u ROWLOCK_URL "$command" run -w 5s nest -- env -u ROWLOCK_URL "$command" run -w 5s inner true
    XDG_STATE_HOME=$work exits "but not a second time in that" 64 run nest -- \
        env -u ROWLOCK_URL "$command" run nest -- env -u ROWLOCK_URL timeout 60 "$command" run nest true
}

# The owner of the run around it, and any owner that is said twice, would take the lock over.
nested_owner() {
    errs "acquire inside of a run does not take its lock over, and says why" 64 "acquire 'nest': a run around this command holds it" \
        run nest -- "$command" acquire nest
    exits "neither does one that does not wait" 64 run nest -- "$command" acquire -n nest
    exits "one with another owner would wait for ever" 64 run nest -- timeout 60 "$command" acquire --owner me nest
    exits "unless it does not wait" 75 run nest -- "$command" acquire -n --owner me nest
    exits "wait would wait for ever, too" 64 run nest -- timeout 60 "$command" wait nest
    exits "acquire of another name is fine" 0 run nest -- "$command" acquire --ttl 100ms nest-3
    exits "a run that does not wait is refused under the same owner" 64 run --owner me nest -- \
        "$command" run -n --owner me nest true
    exits "and so is a shared one" 64 run -s --owner me nest -- "$command" run -s --owner me nest true
}

# Time: another program locks the tables for longer than a statement may take. More or less changes no result.
kept_by_another() {
    local url=$ROWLOCK_URL keeps=$'BEGIN EXCLUSIVE;\n.system touch '$work/kept$'; sleep 4\nCOMMIT;'
    case $db in
        postgres) keeps="BEGIN; LOCK TABLE cli_$$_locks;"$'\n\\! touch '$work/kept$'\nSELECT pg_sleep(4)' ;;
        mysql) keeps="LOCK TABLES cli_$$_locks WRITE;"$'\n\\! touch '$work/kept$'\nSELECT sleep(4)' ;;
        sqlite) url=sqlite:$work/kept.db && sqlite3 "$work/kept.db" "CREATE TABLE of_its_own (id)" && rl install --url "$url" ;;
    esac
    ROWLOCK_TEST_SQLITE_URL=$url sql_client <<<"$keeps" >/dev/null &
    until_true test -e "$work/kept"
    exits "with -v a run waits for tables that another program has" 0 run -v --ttl 3s -w 60s --url "$url" kept true
    wait $! && rm "$work/kept"
}

# A view that changes after the first look stands in for raise-tokens --new-identity between two looks.
renaming() {
    local meta=cli_$$_meta
    [ "$db" = postgres ] || return 0
    sql_client <<END >/dev/null
ALTER TABLE $meta RENAME TO renamed_$meta;
CREATE SEQUENCE looks_$meta;
CREATE VIEW $meta AS SELECT id, version, compat, code, token_floor, swept,
    CASE WHEN nextval('looks_$meta') = 1 THEN 'before' ELSE identity END AS identity FROM renamed_$meta;
END
    errs "a run that starts beside a new identity starts again, and says so" 3 "starting again" run renaming -- sh -c 'exit 3'
    silent "which it does once, without a word then" 0 run renaming -- true
    sql_client <<<"DROP VIEW $meta; DROP SEQUENCE looks_$meta; ALTER TABLE renamed_$meta RENAME TO $meta;"
}

for_each_database install_tables begin_staying statuses environment own_environment files rivals \
    holding paused losing stalling jumping kept_by_another renaming nested nested_deep nested_owner first_process staying
done_testing
