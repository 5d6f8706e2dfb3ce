#!/usr/bin/env bash
# `rowlock run` and a server that hangs, restarts, stays away for a while, or that the URL does not fit. On each server.
. "$(dirname "$0")/cli.sh"
own_servers

# A job that notes the time again and again, under a lease of 6 s.
start_noting() {
    rm -f "$work/hanging"
    as=hanging begun "$work/hanging" run hanging --ttl 6s --grace 300ms -- sh -c \
        'trap "" TERM; while :; do date +%s%6N >>"$0"; sleep 0.02; done' "$work/hanging"
    hanging=$pid
}

# Freezes the server between two renewals. Sets $expires to the end of the lease by the database's clock.
freeze_after_renewal() {
    local before
    ! gone "$hanging" || start_noting
    rl show hanging --json
    before=$(json '$d->{grants}[0]{renewals} // 0')
    until_true renewed_or_gone "$before"
    expires=$(json '$d->{grants}[0]{expires_us}')
    server freeze
    [ "$(date +%s%6N)" -lt $((expires - 4300000)) ] || ! server thaw
}

renewed_or_gone() { renewed hanging "$1" || gone "$hanging"; }

# told_more N TEXT: the silent run has said TEXT after its first N lines.
told_more() { grep '^rowlock:' "$work/silent.err" | tail -n +$(($1 + 1)) | grep -q "$2"; }

# A server that hangs: it takes connections and statements, and never answers. What it was sent it may
# carry out when it is thawed, so the end of the lease is read before it is frozen.
hanging() {
    local ended expires hanging hurried silent told
    as=silent begun "$work/silent" run silent --ttl 60s --grace 300ms -- sh -c 'echo >"$0"; exec sleep 300' "$work/silent"
    silent=$pid
    start_noting
    until_true freeze_after_renewal
    told=$(grep -c "^rowlock:" "$work/silent.err")
    # A try connects for five seconds. A machine may stand still.
    for _ in 1 2 3; do
        ended=later
        start run -n patient true
        rl run -w 1s hurried true
        ! kill -0 "$pid" || ended=before
        hurried=$status
        finished "$pid"
        [ $ended = later ] || break
    done
    same "a wait of a second ends while the server hangs" "$hurried" 69
    same "before a try that began earlier" $ended before
    ends "when the server hangs, the job is ended" 76 "$hanging"
    has "with the reason" "$(cat "$work/hanging.err")" "could not be renewed in time"
    holds "it was dead before its lease ended by the database's clock" ended_by "$work/hanging" "$expires"
    holds "that the server hangs is said in time" until_true told_more "$told" "renew lock 'silent'"
    server thaw
    holds "and when it is over" until_true told_more $((told + 1)) "renew lock 'silent': done after all"
    same "each of it once" "$(grep -c '^rowlock:' "$work/silent.err")" $((told + 2))
    killed "the job has gone on" TERM 143 "$silent"
    exits "and its lock is released" 0 run -n silent true
    rl sweep
}

# A server that goes away and comes back.
restarting() {
    begun "$work/restarting" run restarting --ttl 60s -- sh -c 'echo >"$0"; exec sleep 300' "$work/restarting"
    server stop
    exits "while the server is away, others are told so" 69 run -n restarting true
    server start
    exits "when it is back, the lock is still held" 75 run -n restarting true
    killed "the job has outlived it" TERM 143 "$pid"
    holds "and its lock is released" free restarting

    begun "$work/orphaned" run orphaned --ttl 60s -- sh -c 'echo >"$0"; until [ -e "$0.go" ]; do sleep 0.05; done' "$work/orphaned"
    server stop
    touch "$work/orphaned.go"
    ends "a job that ends while the server is away has its own status, and its lock is left to its lease" 0 "$pid" "it ends with its lease"
    server start
    expire orphaned
    exits "after which others get it" 0 run -n orphaned true
}

# Three that wait while the server goes away and comes back: in the queue, for the first connection, and by looks.
patience() {
    local token who
    declare -A pids
    rl acquire outage --owner holder --ttl 10m
    token=$out
    "$command" run -w 5m --ttl 60s outage -- echo ran >"$work/queue.out" 2>"$work/queue.err" </dev/null &
    pids[queue]=$!
    holds "one waits in the queue" until_true queued outage
    "$command" wait -w 5m outage >"$work/look.out" 2>"$work/look.err" </dev/null &
    pids[look]=$!
    server stop
    "$command" run -w 5m another -- echo ran >"$work/first.out" 2>"$work/first.err" </dev/null &
    pids[first]=$!
    for who in queue look first; do
        holds "the server goes away, which is said ($who)" until_true grep -q "is away" "$work/$who.err"
    done
    exits "a client that does not wait is told that it cannot be reached" 69 run -n outage true
    exits "a client that waits for a moment, too" 69 run -w 1 outage true
    server start
    for who in first queue look; do
        [ $who != queue ] || rl release outage --owner holder --token "$token"
        ends "the server comes back, and the wait has not ended ($who)" 0 "${pids[$who]}"
        same "two lines are said in all ($who)" "$(grep -c . "$work/$who.err")" 2
    done
    same "both jobs have run" "$(cat "$work/queue.out" "$work/first.out")" "$(printf 'ran\nran')"
    who=${ROWLOCK_URL%%\?*}
    exits "a database that is not there is not waited for" 64 run --url "${who%/*}/no_such_database" outage true
}

# The line for cron in docs/OPERATIONS.md that mails once for each host and outage.
one_mail() {
    local line
    line=$(sed -n 's|^\*/5 \* \* \* \*  app  \(flock .*\)report.sh$|\1 sh -c "sleep 60 >/dev/null 2>\&1 \& echo made"|p' docs/OPERATIONS.md)
    line=${line/\/run\/lock\/report/$work/report.lock}
    line=${line/ rowlock run/ $command run}
    server stop
    sh -c "$line" >"$work/mail" 2>&1 </dev/null &
    pid=$!
    holds "cron's line waits for the server" until_true grep -q "is away" "$work/mail"
    same "the host's next ones end at once, without a word" "$(sh -c "$line" 2>&1; sh -c "$line" 2>&1)" ""
    server start
    finished "$pid"
    same "one mail tells of the outage and its end" "$(grep -c ^rowlock: "$work/mail") $(tail -n 1 "$work/mail")" "2 made"
    has "and which job it was" "$(cat "$work/mail")" "run 'report'"
    same "a line after that has nothing to do, and no mail, also if the job has left a process" "$(sh -c "$line" 2>&1; echo $?)" 0
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
    sql_client <<<"ALTER SYSTEM SET ssl_cert_file = '$dir/good.crt'; ALTER SYSTEM SET ssl_key_file = '$dir/good.key';
        ALTER SYSTEM SET ssl = on; SELECT pg_reload_conf();" >/dev/null
    until_true "$command" list --url "$ROWLOCK_URL&sslmode=require"
    no_wait "so is one whose certificate cannot be verified" 78 "sslmode=verify-full&sslrootcert=$dir/other.crt"
    exits "but one whose certificate can be" 0 run --url "$ROWLOCK_URL&sslmode=verify-full&sslrootcert=$dir/good.crt" fault true
    sql_client <<<"ALTER SYSTEM RESET ssl; ALTER SYSTEM RESET ssl_cert_file; ALTER SYSTEM RESET ssl_key_file;
        SELECT pg_reload_conf();" >/dev/null
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
    tls=$([ "$db" = postgres ] && echo sslmode=require || echo ssl_mode=required)
    # MariaDB 11.4 and newer makes a certificate itself.
    grep -q YES <<<"$([ "$db" = postgres ] || sql_client <<<"SELECT @@have_ssl")" ||
        no_wait "a server without the TLS that the URL asks for is not waited for" 78 "$tls"
    make_certificate good
    make_certificate other
    "certificates_$db"
    hang_up &
    pid=$!
    until_true test -s "$work/port"
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
        errs "neither is a host that there is not, which the error says" 64 "no..host" run -w 60s --url "mysql://root@no..host$rest" fault true
    fi
    exits "one of several is passed over" 0 run --url "mysql://root@no..host,${ROWLOCK_URL#*@}" fault true
    can_do "a name service that is away" unshare --net true || return
    unshare --net "$command" run -w 1s --url "mysql://root@no.host.invalid$rest" fault true 2>/dev/null
    same "a name service that is away is waited for" $? 69
}

with_server() {
    own_server || return
    rl install
    hanging
    restarting
    patience
    one_mail
    misconfigured
}

for_each_database with_server
done_testing
