#!/usr/bin/env bash
# A night of `rowlock run --every`, with short periods: two hosts call it again and again, while hosts die and freeze,
# and the database freezes and restarts. No period has two successes. When all is back, each has one. On each database.
# ROWLOCK_TEST_NIGHT: how often all faults come. Without it there is one fault, as make check has no time for more.
. "$(dirname "$0")/cli.sh"
own_servers

period=2
# Time: a job takes a moment, in which faults come. No check depends on how long it takes.
job='echo "$ROWLOCK_PERIOD" >"$0"; sleep 0.3'

# host WHO: calls until the morning comes. A line of WHO.runs is what a run that began ended with, and its period. A
# line of told is a period that another run was told to be done.
host() {
    local status
    while [ ! -e "$work/morning" ]; do
        rm -f "$work/$1.job"
        "$command" run night -n -v --ttl 2s --every ${period}s -- sh -c "$job" "$work/$1.job" 2>"$work/$1.err" &
        echo $! >"$work/$1.pid"
        wait $! 2>/dev/null
        status=$?
        if [ -s "$work/$1.job" ]; then
            echo "$status $(<"$work/$1.job")" >>"$work/$1.runs"
        elif [ $status = 0 ]; then
            sed -n "s/.*: '\(2[^']*Z\)' was done before.*/\1/p" "$work/$1.err" >>"$work/told"
        fi
        # Time: a pause between two calls, of any length.
        sleep 0.1
    done
}

successes() { cat "$work"/*.runs 2>/dev/null | sed -n 's/^0 //p' | sort; }

# hit WHO SIGNAL: sends it to a run of that host whose job has begun. Sets $run.
hit() { until_true in_job "$@"; same "a run of host $1 gets SIG$2" $? 0; }
in_job() {
    run=$(<"$work/$1.pid")
    [ -s "$work/$1.job" ] && ! gone "${run:-none}" && kill -s "$2" "$run"
}

# Two periods in a row had a success, and both began after $since.
quiet() {
    successes | uniq | date -u -f - +%s | awk -v since="$since" -v period=$period '
        $1 > since && $1 == last + period { found = 1 }
        $1 > since { last = $1 }
        END { exit !found }'
}

now() {
    rl run now --every ${period}s -- printenv ROWLOCK_PERIOD
    [ -n "$out" ] && since=$(date -u -d "$out" +%s)
}

# back "what had happened": the periods after it have a success each.
back() {
    until_true now
    holds "after $1 each period has a success" until_true quiet
}

host_dies() {
    hit one KILL
    back "a host that died"
}

host_freezes() {
    hit two STOP
    # Time: longer than the lease, by the real clock of the host. More changes nothing.
    sleep 3
    kill -CONT "$run"
    back "a host that froze"
}

database_freezes() {
    server freeze
    # Time: longer than the lease, by the real clock of the server. More changes nothing.
    sleep 4
    server thaw
    back "a database that froze"
}

database_restarts() {
    # This signal changes nothing.
    hit one CONT
    server stop
    # Time: the hosts mostly find no server meanwhile. What holds after it holds without that, too.
    sleep 1
    server start
    back "a database that restarted"
}

# Another program has the file locked.
file_locked() {
    # Time: longer than the lease. More changes nothing.
    { echo "BEGIN EXCLUSIVE;"; sleep 4; echo "COMMIT;"; } | sql_client
    back "a file that was locked"
}

# A host dies while the database restarts.
one_fault() {
    hit one KILL
    if own_server; then
        server stop
        server start
    fi
    back "a fault"
}

faults() {
    host_dies
    host_freezes
    if [ "$db" = sqlite ]; then
        file_locked
    elif own_server; then
        database_freezes
        database_restarts
    fi
}

night() {
    local hosts=() i since=0 run
    rl install
    : >"$work/told"
    for i in one two; do
        host $i &
        hosts+=($!)
    done
    [ -n "${ROWLOCK_TEST_NIGHT:-}" ] || one_fault
    for ((i = 0; i < ${ROWLOCK_TEST_NIGHT:-0}; i++)); do faults; done
    touch "$work/morning"
    wait "${hosts[@]}"
    same "no period had two successes" "$(successes | uniq -d)" ""
    same "no period is told as done that no job has done" \
        "$(comm -23 <(sort -u "$work/told") <(cut -d ' ' -f 2 "$work"/*.runs | sort -u))" ""
    rl once list night --json
    same "the keys that are done are the successes, and those whose answer was lost" \
        "$(comm -23 <(successes) <(json 'join "\n", map { $_->{key} } grep { $_->{state} eq "done" } @$d' | sort))" ""
    answers "and no lock is held" 0 'scalar grep { $_->{name} eq "night" && !$_->{expired} } @$d' 0 list --json
}

for_each_database night
done_testing
