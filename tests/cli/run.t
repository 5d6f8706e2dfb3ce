#!/usr/bin/env bash
# `rowlock run`: what its command gets, what becomes of its status, how long the lock is held, and what
# happens when the lease is lost. Signals are in signals.t. On each database.
# shellcheck disable=SC2016 # $ in single quotes is Perl's, or the jobs' shell's
set -u
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

# A job that says it has begun, and stays until it is ended.
stay='echo $$ >"$0.pid"; sleep 300 & echo $! >"$0.child"; echo began >"$0"; wait'

# begin NAME OPTION…: such a job in the background under the lock NAME. Sets $pid and $sign.
begin() {
    local name=$1
    shift
    sign=$work/$name
    rm -f "$sign" "$sign".*
    start run "$@" "$name" -- sh -c "$stay" "$sign"
    until_true 20 test -s "$sign" || tap_note "no job: $(cat "$work/bg.err")"
}

held() {
    rl list --json
    [ "$(json "scalar grep { \$_->{name} eq '$1' } @\$d")" = 1 ]
}

free() { ! held "$1"; }

statuses() {
    silent "the status of the command is passed on: 0, and nothing is printed" 0 run st true
    exits "the status of the command is passed on: 1" 1 run st false
    exits "the status of the command is passed on: 75" 75 run st sh -c 'exit 75'
    exits "the status of the command is passed on: 255" 255 run st sh -c 'exit 255'
    exits "a command that a signal ended is 128 plus the signal" 137 run st sh -c 'kill -9 $$'
    exits "a command that is not there is 127" 127 run st "$work/not-there"
    has "which is said" "$err" "not-there': No such file"
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
    same "and they are enough to verify the grant" "${lines[5]}" "verified"
    same "the table names the command" "$(json '$d->{grants}[0]{program}' "$shown")" "sh"
}

# ignored COMMAND…: the signals that a process started by COMMAND ignores. The two above 31 are the C
# library's own.
ignored() {
    local mask
    mask=$("$@" grep SigIgn /proc/self/status | tr -dc '0-9a-f')
    echo $((0x$mask & 0x7fffffff))
}

# What the command can see of files and streams.
files() {
    exits "standard input, output and error are the command's" 0 run io -- sh -c 'cat; echo err >&2'
    same "error included" "$err" "err"
    out=$(echo through | "$command" run io cat)
    same "input included" "$out" "through"
    out=$("$command" run io -- sh -c 'ls -l /proc/$$/fd; :' | grep -c -- '->')
    same "no file, pipe or socket of the lock or its keeper is left open in it" "$out" \
        "$(sh -c 'ls -l /proc/$$/fd; :' | grep -c -- '->')"
    echo inherited >"$work/file"
    out=$("$command" run io -- sh -c 'cat <&7' 7<"$work/file")
    same "but a file that the caller opened for it is" "$out" "inherited"
    same "no signal is ignored that was not" "$(ignored "$command" run io)" "$(ignored env)"
    "$command" run io -- sh -c '[ ! -e /proc/self/fd/1 ]' >&-
    same "a closed standard output stays closed, and is no error" $? 0
}

rivals() {
    local i jobs=()
    begin rival
    exits "while one runs, another is told with -n" 75 run -n rival true
    exits "or after it has waited" 75 run -w 300ms rival true
    exits "with the status it asked for" 0 run -n -E 0 rival sh -c 'exit 9'
    exits "and nobody waits for another name" 0 run -n other-rival true
    "$command" run rival touch "$work/second" 2>/dev/null &
    i=$!
    sleep 0.3
    holds "who waits does not run" test ! -e "$work/second"
    kill "$(cat "$sign.child")"
    ends "the first ends" 0 "$pid"
    finished $i
    same "and the other runs" "$status" 0
    holds "its command" test -e "$work/second"

    echo 0 >"$work/counter"
    for i in 1 2 3 4 5 6 7 8; do
        (for _ in 1 2 3 4 5 6 7 8 9 10; do
            "$command" run counter -- sh -c 'n=$(cat "$0"); echo $((n + 1)) >"$0"' "$work/counter" ||
                echo "status $?"
        done) >"$work/counter.$i" 2>&1 &
        jobs+=($!)
    done
    wait "${jobs[@]}"
    same "8 processes that add 10 times 1 to a file make 80" "$(cat "$work/counter")" 80
    same "and none of them has anything to complain about" "$(cat "$work"/counter.?)" ""
}

holding() {
    exits "with --min-hold the lock outlives a short command" 0 run --min-hold 1s min -- true
    rl list --json
    "$command" run --min-hold 60 min2 -- touch "$work/min2" &
    pid=$!
    until_true 10 test -e "$work/min2"
    sleep 0.3
    holds "and is held meanwhile" held min2
    killed "a signal ends that" TERM 143 $pid
    holds "and the lock is free" free min2
    errs "with --max-hold a command is ended, and told why" 76 "--max-hold" run --max-hold 300ms max -- sleep 300
    exits "the lock is free afterwards" 0 run -n max true
    exits "one that does not heed SIGTERM is killed after --grace" 76 \
        run --max-hold 200ms --grace 200ms max -- sh -c 'trap "" TERM; sleep 300'
    rm -f "$work/full"
    mkfifo "$work/full"
    timeout -k 1 30 "$command" run --max-hold 2s --grace 200ms max -- sh -c \
        'trap "" TERM; echo x >"$0"; exec sleep 300' "$work/max" 8<>"$work/full" 2>&8 &
    pid=$!
    until_true 20 test -s "$work/max"
    timeout 1 cat /dev/zero 8<>"$work/full" >&8
    ends "also when nobody reads what is said about it" 76 $pid

    begin renewed --ttl 3s
    until_true 20 renewed_since renewed 2
    holds "a lease is renewed for as long as the command runs" kill -0 "$pid"
    holds "as its renewals tell" test "$(json '$d->{grants}[0]{renewals}')" -ge 3
    holds "and it has not run out" test "$(json '$d->{grants}[0]{remaining_ms}')" -gt 0
    killed "it ends when told" TERM 143 "$pid"
}

losing() {
    local stubborn
    begin lost --ttl 1500ms --grace 300ms
    rl break lost
    ends "a job whose lock was broken is ended" 76 "$pid"
    has "with the reason" "$(cat "$work/bg.err")" "the lock was lost"
    holds "the command is gone" gone "$(cat "$sign.pid")"
    holds "and so is its child" until_true 5 gone "$(cat "$sign.child")"

    sign=$work/stubborn
    begun "$sign" run stubborn --ttl 1500ms --grace 300ms -- sh -c 'trap "" TERM; '"$stay" "$sign"
    rl break stubborn
    ends "so is one that does not heed SIGTERM" 76 "$pid"
    stubborn=$(cat "$sign.pid" "$sign.child" | tr '\n' ' ')
    for pid in $stubborn; do
        holds "none of its processes is left" until_true 5 gone "$pid"
    done

    sign=$work/orphan
    start run orphan --ttl 1500ms --grace 300ms -- sh -c \
        '(trap "" TERM; sleep 300 & echo $! >"$0.child"; wait) & trap "exit 0" TERM; echo x >"$0"; wait' "$sign"
    until_true 20 test -s "$sign.child"
    rl break orphan
    ends "a child that outlives its parent's SIGTERM counts as well" 76 "$pid"
    holds "and is killed" until_true 5 gone "$(cat "$sign.child")"

    exits "a lock that is found lost at the end is 76, whatever the command said" 76 run late -- \
        sh -c '"$0" break late >/dev/null; exit 5' "$command"
    has "which is said together with that" "$err" "exit status 5"
}

# just_renewed NAME: waits for the next renewal, so that there is some time until the one after it. Sets
# $expires to the end of the lease by the database's clock.
just_renewed() {
    local before
    rl show "$1" --json
    before=$(json '$d->{grants}[0]{renewals}')
    until_true 20 renewed_since "$1" "$before" || tap_note "no renewal of $1: $(cat "$work/bg.err")"
    expires=$(json '$d->{grants}[0]{expires_us}')
}

renewed_since() {
    rl show "$1" --json
    [ "$(json '$d->{grants}[0]{renewals}')" -gt "$2" ]
}

# freeze_after_renewal NAME: of a lease of 6 s, and before the next renewal. Sets $expires.
freeze_after_renewal() {
    just_renewed "$1"
    server freeze
    [ "$(date +%s%6N)" -lt $((expires - 4000000)) ] || ! server thaw
}

# A server that hangs: it takes connections and statements, and never answers. What it was sent it may
# carry out when it is thawed, so the end of the lease is read before it is frozen.
hanging() {
    local dir=ROWLOCK_TEST_${db^^}_DIR ended expires
    [ -n "${!dir:-}" ] || return 0
    begin silent --ttl 8s --grace 300ms
    just_renewed silent
    server freeze
    holds "that the server hangs is said in time" until_true 8 grep -q "^rowlock: renew lock 'silent'" "$work/bg.err"
    server thaw
    holds "and when it is over" until_true 8 grep -q "renew lock 'silent': done after all" "$work/bg.err"
    same "each of it once" "$(grep -c '^rowlock:' "$work/bg.err")" 2
    killed "the job has gone on" TERM 143 "$pid"
    exits "and its lock is released" 0 run -n silent true

    sign=$work/hanging
    rm -f "$sign"
    start run hanging --ttl 6s --grace 300ms -- sh -c \
        'trap "" TERM; while :; do date +%s%6N >"$0.new"; mv "$0.new" "$0"; sleep 0.02; done' "$sign"
    until_true 20 test -s "$sign"
    until_true 60 freeze_after_renewal hanging
    ends "when the server hangs, the job is ended" 76 "$pid"
    ended=$(cat "$sign")
    server thaw
    has "with the reason" "$(cat "$work/bg.err")" "could not be renewed in time"
    holds "it was dead before its lease ended by the database's clock" test "$ended" -lt "$expires"
    rl sweep

    # A try connects for five seconds.
    server freeze
    start run -n patient true
    exits "a wait of a second ends while the server hangs" 69 run -w 1s hurried true
    ended=later
    for _ in 1 2 3; do
        ! kill -0 "$pid" || ended=before
        finished "$pid"
        [ $ended = later ] || break
        start run -n patient true
        rl run -w 1s hurried true
    done
    same "before a try that began earlier" $ended before
    server thaw
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
    ROWLOCK_URL=$url rl install
    ROWLOCK_URL=$url begin jumping --ttl 3s
    ROWLOCK_URL=$url just_renewed jumping
    psql -qAtX "$url" -c "UPDATE clock SET ahead = '1 hour'"
    holds "a lease that ran out because the database's clock jumped is told" \
        until_true 20 grep -q "the lease had run out" "$work/bg.err"
    psql -qAtX "$url" -c "UPDATE clock SET ahead = '0'"
    sleep 2
    same "once" "$(grep -c '^rowlock:' "$work/bg.err")" 1
    killed "and the job goes on" TERM 143 "$pid"
    psql -qAtX "$base" -c "DROP DATABASE clock_$$"
}

# A job that is to tell progress.
stalling() {
    local tells='tell() { echo >&"$ROWLOCK_PROGRESS_FD"; sleep 0.1; }
        tells() { for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do tell; done; }'
    exits "without --stall there is nothing to tell progress to" 0 run stall -- sh -c 'exit ${ROWLOCK_PROGRESS_FD:-0}'
    exits "a job that tells progress goes on" 7 run --stall 3s --ttl 9s --grace 300ms stall -- \
        sh -c "$tells; tells; exit 7"
    same "and nothing is said" "$err" ""
    errs "one that stops telling is ended, with the reason" 76 "the job reported no progress for" \
        run --stall 1s --ttl 3s --grace 300ms stall -- sh -c "$tells; exec sleep 300"
    exits "its lock is released" 0 run -n stall true
    exits "so is one that cannot tell" 76 run --stall 500ms --ttl 1s --grace 200ms stall -- \
        sh -c 'eval "exec $ROWLOCK_PROGRESS_FD>&-"; exec sleep 300'
    errs "one that tells again before the end of its lease goes on, which is said" 7 "done after all" \
        run --stall 500ms --ttl 6s --grace 300ms stall -- sh -c "$tells; sleep 1.5; tells; exit 7"
    exits "and one that has ended need not tell for --min-hold" 7 run --stall 1500ms --ttl 4s --grace 200ms \
        --min-hold 3s stall -- sh -c 'exit 7'
    same "for which nothing is said" "$err" ""
}

# A server that goes away and comes back.
restarting() {
    local dir=ROWLOCK_TEST_${db^^}_DIR
    [ -n "${!dir:-}" ] || return 0
    begin restarting --ttl 30s
    server stop
    exits "while the server is away, others are told so" 69 run -n restarting true
    server start
    exits "when it is back, the lock is still held" 75 run -n restarting true
    killed "the job has outlived it" TERM 143 "$pid"
    holds "and its lock is released" free restarting

    begin orphaned --ttl 6s
    server stop
    kill "$(cat "$sign.child")"
    ends "a job that ends while the server is away has its own status" 0 "$pid"
    has "and its lock is left to its lease" "$(cat "$work/bg.err")" "it ends with its lease"
    server start
    exits "after which others get it" 0 run -w 60 orphaned true
}

# As process number 1 of a container.
first_process() {
    local alone=(unshare --pid --fork --mount-proc --kill-child)
    can_do "run as process number 1" "${alone[@]}" true || return
    out=$("${alone[@]}" "$command" run first -- sh -c 'sh -c "sleep 0.1 & sleep 0.2 &"; sleep 1; cat /proc/[0-9]*/stat' 2>"$work/err")
    same "process number 1 ends with its command" $? 0
    holds "and has collected the orphans meanwhile" test 0 = "$(grep -c ') Z ' <<<"$out")"
    "${alone[@]}" "$command" run first -- sh -c 'kill -TERM $$' 2>/dev/null
    same "a signal that ends the command cannot end it, and its status says it" $? 143
}

# A run inside of a run.
nested() {
    exits "a run of the same name inside of it is refused" 64 run nest -- "$command" run nest true
    has "with the reason" "$err" "run 'nest': a run around this command holds it"
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
    exits "a run inside of two others is refused the name of the outermost" 64 run nest -- \
        "$command" run inner -- timeout 20 "$command" run nest true
    has "with the same reason" "$err" "run 'nest': a run around this command holds it"
    exits "one inside of three, too" 64 run third nest -- "$command" run inner -- \
        "$command" run "$odd" -- timeout 20 "$command" run nest true
    exits "and the name between them" 64 run nest -- \
        "$command" run --owner "$odd" "$odd" -- "$command" run inner -- timeout 20 "$command" run "$odd" true
    exits "other names are fine at any depth" 0 run --owner "$odd" nest -- \
        "$command" run "$odd" -- "$command" run inner -- "$command" run 6e657374 true
    XDG_STATE_HOME=$work exits "so is the same name in another database" 0 run nest -- "$command" run inner -- \
        env -u ROWLOCK_URL "$command" run -w 5s nest -- env -u ROWLOCK_URL "$command" run -w 5s inner true
    XDG_STATE_HOME=$work exits "but not a second time in that" 64 run nest -- \
        env -u ROWLOCK_URL "$command" run nest -- env -u ROWLOCK_URL timeout 20 "$command" run nest true
}

# The owner of the run around it, and any owner that is said twice, would take the lock over.
nested_owner() {
    exits "acquire inside of a run does not take its lock over" 64 run nest -- "$command" acquire nest
    has "and says why" "$err" "acquire 'nest': a run around this command holds it"
    exits "neither does one that does not wait" 64 run nest -- "$command" acquire -n nest
    exits "one with another owner would wait for ever" 64 run nest -- timeout 20 "$command" acquire --owner me nest
    exits "unless it does not wait" 75 run nest -- "$command" acquire -n --owner me nest
    exits "wait would wait for ever, too" 64 run nest -- timeout 20 "$command" wait nest
    exits "acquire of another name is fine" 0 run nest -- "$command" acquire --ttl 100ms nest-3
    exits "a run that does not wait is refused under the same owner" 64 run --owner me nest -- \
        "$command" run -n --owner me nest true
    exits "and so is a shared one" 64 run -s --owner me nest -- "$command" run -s --owner me nest true
}

# raise-tokens --new-identity between two looks at the tables: a view that changes after the first look stands
# in for it.
renaming() {
    local meta=cli_$$_meta
    [ "$db" = postgres ] || return 0
    sql_client <<END >/dev/null
ALTER TABLE $meta RENAME TO renamed_$meta;
CREATE SEQUENCE looks_$meta;
CREATE VIEW $meta AS SELECT id, version, compat, code, token_floor, swept,
    CASE WHEN nextval('looks_$meta') = 1 THEN 'before' ELSE identity END AS identity FROM renamed_$meta;
END
    exits "a run that starts beside a new identity starts again" 3 run renaming -- sh -c 'exit 3'
    has "and says so" "$err" "starting again"
    exits "which it does once" 0 run renaming -- true
    same "without a word then" "$err" ""
    sql_client <<<"DROP VIEW $meta; DROP SEQUENCE looks_$meta; ALTER TABLE renamed_$meta RENAME TO $meta;"
}

# Three that wait while the server goes away and comes back: in the queue, for the first connection, and by looks.
patience() {
    local dir=ROWLOCK_TEST_${db^^}_DIR token who
    declare -A pids
    [ -n "${!dir:-}" ] || return 0
    rl acquire outage --owner holder --ttl 10m
    token=$out
    "$command" run -w 5m --ttl 60s outage -- echo ran >"$work/queue.out" 2>"$work/queue.err" </dev/null &
    pids[queue]=$!
    holds "one waits in the queue" until_true 20 sh -c '"$0" list --waiters | grep -q outage' "$command"
    "$command" wait -w 5m outage >"$work/look.out" 2>"$work/look.err" </dev/null &
    pids[look]=$!
    server stop
    "$command" run -w 5m another -- echo ran >"$work/first.out" 2>"$work/first.err" </dev/null &
    pids[first]=$!
    for who in queue look first; do
        holds "the server goes away, which is said ($who)" until_true 30 grep -q "is away" "$work/$who.err"
    done
    exits "who does not wait is told that it cannot be reached" 69 run -n outage true
    exits "who waits for a moment, too" 69 run -w 1 outage true
    sleep 7
    server start
    for who in first queue look; do
        [ $who != queue ] || rl release outage --owner holder --token "$token"
        finished "${pids[$who]}"
        same "the server comes back, and the wait has not ended ($who)" "$status" 0
        same "two lines are said in all ($who)" "$(grep -c . "$work/$who.err")" 2
    done
    same "both jobs have run" "$(cat "$work/queue.out" "$work/first.out")" "$(printf 'ran\nran')"
    who=${ROWLOCK_URL%%\?*}
    exits "a database that is not there is not waited for" 64 run --url "${who%/*}/no_such_database" outage true
}

# no_wait "what holds" N PARAMETER: refused at once with N, in one line.
no_wait() {
    exits "$1" "$2" run -w 60s --url "$ROWLOCK_URL&$3" fault true
    same "$1, in one line" "$(wc -l <"$work/err")" 1
}

# make_certificate NAME: $dir/NAME.crt, which vouches for itself, and its key
make_certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$dir/$1.key" -out "$dir/$1.crt" 2>/dev/null
    chmod 600 "$dir/$1.key"
    chown --reference="$dir" "$dir/$1.key" "$dir/$1.crt"
}

certificates_postgres() {
    local settings="ssl ssl_cert_file ssl_key_file" setting
    sql_client <<<"ALTER SYSTEM SET ssl_cert_file = '$dir/good.crt'; ALTER SYSTEM SET ssl_key_file = '$dir/good.key';
        ALTER SYSTEM SET ssl = on; SELECT pg_reload_conf();" >/dev/null
    until_true 20 "$command" list --url "$ROWLOCK_URL&sslmode=require"
    no_wait "so is one whose certificate cannot be verified" 78 "sslmode=verify-full&sslrootcert=$dir/other.crt"
    exits "but one whose certificate can be" 0 run --url "$ROWLOCK_URL&sslmode=verify-full&sslrootcert=$dir/good.crt" fault true
    for setting in $settings; do echo "ALTER SYSTEM RESET $setting;"; done | sql_client
    sql_client <<<"SELECT pg_reload_conf();" >/dev/null
}

certificates_mysql() {
    cp -p "$dir/argv" "$dir/argv.plain"
    printf '%s\n' "--ssl-cert=$dir/good.crt" "--ssl-key=$dir/good.key" >>"$dir/argv"
    server restart
    no_wait "so is one whose certificate cannot be verified" 78 "ssl_mode=verify&ssl_ca=$dir/other.crt"
    exits "but one whose certificate can be" 0 run --url "$ROWLOCK_URL&ssl_mode=verify&ssl_ca=$dir/good.crt" fault true
    mv "$dir/argv.plain" "$dir/argv"
    server restart
}

# What hangs up where it should say whether it has TLS; the one like MariaDB does so once, and is gone then.
hang_up() {
    exec perl -MIO::Socket::INET -e '
        my ($db, $file) = @ARGV;
        my $listener = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1") or die;
        open my $port, ">", "$file.new" or die;
        print $port $listener->sockport;
        close $port;
        rename "$file.new", $file;
        my $greeting = "\x0a5.5.5-10.11.6-MariaDB\0c\0\0\0" . "12345678\0\x0b\xaa\x2d\x02\0\x0f\0\x15" .
            "\0" x 10 . "123456789012\0mysql_native_password\0";
        do {
            my $client = $listener->accept;
            print $client pack("V", length $greeting) . $greeting if $db eq "mysql";
            $client->flush;
            sysread $client, my $bytes, 36;
        } while ($db eq "postgres");' "$db" "$work/port"
}

# Faults that no wait can mend, and others that look like them.
misconfigured() {
    local dir=ROWLOCK_TEST_${db^^}_DIR tls
    dir=${!dir:-}
    [ -n "$dir" ] || return 0
    tls=$([ "$db" = postgres ] && echo sslmode=require || echo ssl_mode=required)
    no_wait "a server without the TLS that the URL asks for is not waited for" 78 "$tls"
    make_certificate good
    make_certificate other
    "certificates_$db"
    hang_up &
    pid=$!
    until_true 20 test -s "$work/port"
    tls=${tls/required/verify}
    exits "one that hangs up instead is away" 69 run -w 1s \
        --url "${ROWLOCK_URL%%:*}://root@127.0.0.1:$(cat "$work/port")/x?$tls" fault true
    kill $pid 2>/dev/null
    wait $pid 2>/dev/null
    "misconfigured_$db"
}

misconfigured_postgres() {
    no_wait "a value that libpq does not know is refused" 64 "sslmode=nonsense"
    no_wait "a login that the client refuses, too" 78 "channel_binding=require"
    no_wait "and one that the server refuses" 77 "user=nobody_of_this_name"
    exits "a server that may become another one is waited for" 69 run -w 1s \
        --url "$ROWLOCK_URL&target_session_attrs=read-only" fault true
}

misconfigured_mysql() {
    local rest=${ROWLOCK_URL#*@}
    exits "a login that the server refuses is not waited for" 77 run -w 60s --url "mysql://nobody_of_this_name@$rest" fault true
    rest=/${rest#*/}
    if ldd "$command" | grep -q libmariadb; then # Oracle's library does not tell
        exits "neither is a host that there is not" 64 run -w 60s --url "mysql://root@no..host$rest" fault true
        has "which the error says" "$err" "no..host"
    fi
    exits "one of several is passed over" 0 run --url "mysql://root@no..host,${ROWLOCK_URL#*@}" fault true
    can_do "a name service that is away" unshare --net true || return
    unshare --net "$command" run -w 1s --url "mysql://root@no.host.invalid$rest" fault true 2>/dev/null
    same "a name service that is away is waited for" $? 69
}

all() {
    rl install
    statuses
    environment
    files
    rivals
    holding
    losing
    stalling
    jumping
    hanging
    restarting
    patience
    renaming
    misconfigured
    nested
    nested_deep
    nested_owner
    first_process
}

for_each_database all
done_testing
