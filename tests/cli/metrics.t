#!/usr/bin/env bash
# `rowlock metrics`: the figures of each database, read by Prometheus's own client library, and the
# files that the node exporter reads. `run --metrics`: what became of a job. And the alert rules.
. "$(dirname "$0")/cli.sh"
own_servers

has_module prometheus_client || { done_testing; exit; }

# The samples of the file, or of $out.
samples() {
    [ $# = 0 ] || cp "$1" "$work/prom"
    [ $# != 0 ] || printf '%s\n' "$out" >"$work/prom"
    "$python" tests/lib/metrics.py "$work/prom"
}

# measures "what holds" ARGUMENT…: sets $figures.
measures() {
    exits "$1" 0 metrics "${@:2}"
    figures=$(samples 2>"$work/err")
    same "$1: Prometheus can read it" "$? $(<"$work/err")" "0 "
}

# figure "what holds" LINE: it is among them. figure_now: among those of $out.
figure_now() { figures=$(samples); figure "$@"; }
figure() { has "$1: $2" $'\n'"$figures"$'\n' $'\n'"$2"$'\n'; }

# between "what holds" PREFIX LEAST MOST: the value of the only line that begins so.
between() {
    local value
    value=$(grep -F -- "$2 " <<<"$figures")
    holds "$1: $value" awk -v value="${value##* }" -v least="$3" -v most="$4" \
        'BEGIN { exit !(value != "" && value >= least && value <= most) }'
}

# A name of 255 bytes with all that a label value escapes, and more.
hostile=$'quo"te \\n back\\slash\nline {a="b"} 100% ä '
hostile+=$(printf '%*s' $((255 - $(printf %s "$hostile" | wc -c))) '' | tr ' ' x)

empty_tables() {
    exits "install" 0 install
    measures "metrics of empty tables"
    figure "it is up" "rowlock_up gauge 1.0"
    figure "the version is that of the tables" "rowlock_schema_version gauge 1.0"
    figure "no lock is held" "rowlock_locks gauge kind='exclusive' state='held' 0.0"
    same "no sweep has ended, and that was not in 1970" "$(grep -c rowlock_last_sweep <<<"$figures")" 0
    has "the metric is known all the same" "$out" "# TYPE rowlock_last_sweep_timestamp_seconds gauge"
    between "check has found nothing bad" "rowlock_check_worst gauge" 0 1
    measures "with --match" --match '*'
    same "there is no name yet" "$(grep -c "name=" <<<"$figures")" 0
}

locks() {
    local waiter
    exits "a lock" 0 acquire held --owner me --ttl 1h
    exits "a shared lock" 0 acquire shared -s --owner one --ttl 1h
    exits "twice" 0 acquire shared -s --owner two --ttl 1h
    exits "a counted one" 0 acquire counted --permits 3 --owner me --ttl 1h
    exits "one whose lease ends" 0 acquire ended --owner me --ttl 100ms
    exits "a hostile name" 0 acquire "$hostile" --owner me --ttl 1h
    exits "a once key" 0 run --once key job -- true
    exits "a sweep of nothing" 0 sweep --older-than 1d
    exits "whose end is waited for" 0 wait ended
    start run held -- true
    waiter=$pid
    until_true queued held
    # Time: the smallest unit of the figures is a millisecond. A longer wait makes them larger only.
    sleep 0.05
    measures "metrics"
    figure "exclusive" "rowlock_locks gauge kind='exclusive' state='held' 2.0"
    figure "shared" "rowlock_locks gauge kind='shared' state='held' 2.0"
    figure "counted" "rowlock_locks gauge kind='counted' state='held' 1.0"
    figure "over" "rowlock_locks gauge kind='exclusive' state='expired' 1.0"
    figure "a waiter" "rowlock_waiters gauge 1.0"
    figure "a key that is done" "rowlock_once_keys gauge state='done' 1.0"
    figure "each name that was granted" "rowlock_names gauge 6.0"
    between "somebody holds for a while" "rowlock_longest_hold_seconds gauge" 0.001 3600
    between "somebody waits" "rowlock_oldest_waiter_seconds gauge" 0.001 3600
    between "the sweep" "rowlock_last_sweep_timestamp_seconds gauge" 1500000000 9000000000
    same "no label has a name unless --match asks for it" "$(grep -c "name=" <<<"$figures")" 0

    measures "metrics of one name" --match hel?
    same "it is the only one" "$(grep -o "name='[^']*'" <<<"$figures" | sort -u)" "name='held'"
    figure "it is held" "rowlock_lock_held gauge name='held' 1.0"
    figure "a waiter" "rowlock_lock_waiters gauge name='held' 1.0"
    figure "one grant" "rowlock_lock_grants_total counter name='held' 1.0"
    figure "no lease ran out" "rowlock_lock_lapsed_seconds gauge name='held' 0.0"
    between "held" "rowlock_lock_held_seconds gauge name='held'" 0.001 3600
    between "remaining" "rowlock_lock_remaining_seconds gauge name='held'" 1 3600
    between "waited" "rowlock_lock_oldest_waiter_seconds gauge name='held'" 0.001 3600
    measures "metrics of a shared one" --match 'sh*'
    figure "two holders" "rowlock_lock_held gauge name='shared' 2.0"
    figure "two grants" "rowlock_lock_grants_total counter name='shared' 2.0"
    measures "metrics of one that is over" --match ended
    figure "it is not held" "rowlock_lock_held gauge name='ended' 0.0"
    exits "release" 0 release held --owner me --token 1
    ends "the waiter has its turn" 0 "$waiter"
    measures "metrics of a hostile name" --match 'quo*'
    "$python" -c 'import sys; print("rowlock_lock_held gauge name=%r 1.0" % sys.argv[1])' "$hostile" >"$work/expected"
    figure "the label has all of it" "$(cat "$work/expected")"
}

files() {
    local dir=$work/textfile
    mkdir -p "$dir"
    echo old >"$dir/rowlock.prom"
    exec 9<"$dir/rowlock.prom"
    silent "a file for the node exporter" 0 metrics --textfile "$dir/rowlock.prom"
    figure_of "$dir/rowlock.prom" "has them" "rowlock_up gauge 1.0"
    same "a reader of the old one reads it to its end" "$(cat <&9)" old
    exec 9<&-
    rm "$dir/rowlock.prom"
    (umask 077 && rl metrics --textfile "$dir/rowlock.prom")
    same "others may read it under each umask" "$(stat -c %a "$dir/rowlock.prom")" 644
    same "nothing else is there" "$(ls -A "$dir")" rowlock.prom
}

# job "what holds" N NAME COMMAND…: a run with --metrics. Sets $figures.
job() {
    exits "$1" "$2" run --metrics "$jobs" "${@:3}"
    figures=$(samples "$jobs/rowlock_$3.prom")
    figure "$1: its status" "rowlock_job_exit_code gauge name='$3' $2.0"
}

# figure_of FILE "what holds" LINE
figure_of() {
    figures=$(samples "$1")
    figure "${@:2}"
}

jobs_of_a_host() {
    local success before queued_ms waited_ms
    jobs=$work/jobs
    mkdir -p "$jobs"
    job "a job that succeeds" 0 nightly true
    figure "one run" "rowlock_job_runs_total counter name='nightly' 1.0"
    figure "no loss" "rowlock_job_lost_total counter name='nightly' 0.0"
    between "when" "rowlock_job_last_success_timestamp_seconds gauge name='nightly'" 1500000000 9000000000
    success=$(grep last_success <<<"$figures")
    job "one that fails" 3 nightly sh -c 'sleep 0.01; exit 3'
    figure "two runs" "rowlock_job_runs_total counter name='nightly' 2.0"
    figure "the last success stays" "$success"
    between "how long" "rowlock_job_duration_seconds gauge name='nightly'" 0.01 3600
    job "one of each day" 0 daily --every 1d true
    figure "its period" "rowlock_job_period_seconds gauge name='daily' 86400.0"
    rm "$jobs/rowlock_daily.prom"
    job "one that exits with 76 by itself" 76 nightly sh -c 'exit 76'
    figure "that is no loss" "rowlock_job_lost_total counter name='nightly' 0.0"
    job "one that a signal ends" 143 nightly sh -c 'kill -TERM $$'
    job "one that is not there" 127 nightly "$work/none"
    same "others may read the file" "$(stat -c %a "$jobs/rowlock_nightly.prom")" 644

    # Time: the next renewal, after 5 s, finds the loss. A machine may stand still for 8 s more, as --grace is short.
    begun "$work/begun" run --metrics "$jobs" --ttl 15s --grace 1s nightly -- sh -c 'echo >"$0"; exec sleep 60' "$work/begun"
    before=$(cat "$jobs/rowlock_nightly.prom")
    exits "another run does not get the lock" 75 run --metrics "$jobs" -n nightly true
    same "which changes nothing" "$(cat "$jobs/rowlock_nightly.prom")" "$before"
    rl break nightly
    ends "a job whose lock is lost" 76 "$pid"
    figure_of "$jobs/rowlock_nightly.prom" "its status" "rowlock_job_exit_code gauge name='nightly' 76.0"
    figure "a loss" "rowlock_job_lost_total counter name='nightly' 1.0"
    figure "six runs" "rowlock_job_runs_total counter name='nightly' 6.0"

    rm "$work/begun"
    begun "$work/begun" run --metrics "$jobs" --ttl 60s nightly -- sh -c 'echo >"$0"; exec sleep 60' "$work/begun"
    before=$(cat "$jobs/rowlock_nightly.prom")
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    same "a run that is killed leaves the old file" "$(cat "$jobs/rowlock_nightly.prom")" "$before"
    start run --metrics "$jobs" nightly true
    until_true queued nightly
    queued_ms=$(date +%s%3N)
    pause
    waited_ms=$(($(date +%s%3N) - queued_ms))
    rl break nightly
    ends "the next one waits until that is broken" 0 "$pid"
    figure_of "$jobs/rowlock_nightly.prom" "its status" "rowlock_job_exit_code gauge name='nightly' 0.0"
    between "and says how long" "rowlock_job_wait_seconds gauge name='nightly'" ${waited_ms}e-3 3600
    same "no other file is left" "$(ls -A "$jobs")" rowlock_nightly.prom
}

jobs_with_names() {
    local name
    rl break "$hostile"
    for name in a/b a_b a:b ../a '~' "$hostile"; do
        exits "a job with a hostile name" 0 run --metrics "$jobs" "$name" true
    done
    exits "a job with two locks" 0 run --metrics "$jobs" one two -- true
    same "each has a file of its own" "$(find "$jobs" -name '*.prom' | wc -l)" 8
    same "in that folder" "$(find "$work" -name '*a*.prom' ! -path "$jobs/*")" ""
    same "a name without danger is the file's" "$(ls "$jobs/rowlock_a_b.prom")" "$jobs/rowlock_a_b.prom"
    "$python" -c 'import sys; print("rowlock_job_runs_total counter name=%r 1.0" % sys.argv[1])' "$hostile" >"$work/expected"
    figure_of "$(grep -l 'quo' "$jobs"/*.prom)" "the label has the whole name" "$(cat "$work/expected")"
    exits "it runs again" 0 run --metrics "$jobs" "$hostile" true
    figure_of "$(grep -l 'quo' "$jobs"/*.prom)" "its counter is read back" "$(sed 's/1.0$/2.0/' "$work/expected")"
    figure_of "$(grep -l 'two' "$jobs"/*.prom)" "two locks are one job" "rowlock_job_runs_total counter name='one\\ntwo' 1.0"
    job "a job that has never succeeded" 1 sorry false
    figure "has run" "rowlock_job_runs_total counter name='sorry' 1.0"
    same "and has no time of a success" "$(grep -c last_success <<<"$figures")" 0
    printf 'rowlock_job_last_%s_timestamp_seconds{name="sorry"} 99999999999.000\n' start success >"$jobs/rowlock_sorry.prom"
    job "a file was written while the clock was wrong" 3 sorry sh -c 'exit 3'
    between "the time is that of this run" "rowlock_job_last_start_timestamp_seconds gauge name='sorry'" 1500000000 9000000000
    same "a success to come is none" "$(grep -c last_success <<<"$figures")" 0
    mkfifo "$jobs/rowlock_pipe.prom"
    "$command" run --metrics "$jobs" pipe true 2>"$work/pipe.err" </dev/null &
    holds "a FIFO in the file's place is not waited for" until_true gone $!
    has "nor is it replaced" "$(<"$work/pipe.err")" "not a regular file"
    rm "$jobs/rowlock_pipe.prom"
    truncate -s 3G "$jobs/rowlock_huge.prom"
    job "a file is larger than any of ours" 0 huge true
    has "it is not read" "$err" "is no file of this command"
    figure "but written anew" "rowlock_job_runs_total counter name='huge' 1.0"
    echo 'rowlock_job_runs_total{name="a_b"} what' >"$jobs/rowlock_a_b.prom"
    job "a file of something else is written anew" 0 a_b true
    figure "from 0" "rowlock_job_runs_total counter name='a_b' 1.0"
    errs "a folder that is not there does not fail the job" 0 "No such file" run --metrics "$work/none" a_b true
    errs "an empty folder's name" 64 "empty" run --metrics '' a_b true
}

# Each metric that the rules name is one that the commands print.
rules() {
    local rules=examples/prometheus/rowlock.rules.yml printed asked
    printed=$({ rl metrics --match '*'; echo "$out"; cat "$jobs"/*.prom; } | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' | sort -u)
    asked=$(grep -oE '\browlock_[a-z_]+' "$rules" | sort -u)
    holds "the alert rules name metrics" test -n "$asked"
    same "all of them are printed" "$(comm -23 <(echo "$asked") <(echo "$printed"))" ""
    same "the documents name those that are printed, and no others" \
        "$(grep -ohE '\browlock_[a-z_]+' docs/man/rowlock-metrics.1 | grep -E '_(seconds|total|up)$|_(lock|job)_' | sort -u | comm -23 - <(echo "$printed"))" ""
    [ -n "${ROWLOCK_TEST_LONG:-}" ] && needs promtool "the alert rules" || return
    holds "promtool accepts the rules" promtool check rules "$rules"
    holds "they tell of sweeps and jobs" promtool test rules tests/cli/rules.test.yml
    rl metrics --match '*'
    holds "and the metrics" promtool check metrics <<<"$out"
}

database_away() {
    own_server || return
    server stop
    errs "without the server, metrics say so" 69 "rowlock: " metrics
    figure_now "and are down" "rowlock_up gauge 0.0"
    same "and nothing else" "$(wc -l <<<"$figures")" 1
    exits "a file is written all the same" 0 metrics --textfile "$work/textfile/rowlock.prom"
    figure_of "$work/textfile/rowlock.prom" "which tells the alert" "rowlock_up gauge 0.0"
    same "the reason is said" "$(grep -c "^rowlock: " <<<"$err")" 1
    server start
    exits "with the server again" 0 metrics --textfile "$work/textfile/rowlock.prom"
    figure_of "$work/textfile/rowlock.prom" "it is up again" "rowlock_up gauge 1.0"
}

# Nothing is written where the file was, if the new one cannot be written as a whole.
no_room() {
    local dir=$work/no-room
    mkdir -p "$dir"
    echo old >"$dir/rowlock.prom"
    err=$(trap '' XFSZ; ulimit -f 0; "$command" --url sqlite:/no/such/folder/x.db metrics \
        --textfile "$dir/rowlock.prom" 2>&1)
    is "a disk that is full is an error" $? 74
    has "which is said" "$err" "write '$dir/rowlock.prom': File too large"
    is "the old file stays" "$(cat "$dir/rowlock.prom")" old
    is "and no other" "$(ls -A "$dir")" rowlock.prom
    errs "a database that cannot be" 64 "does not exist" --url sqlite:/no/such/folder/x.db metrics
    figure_now "is down" "rowlock_up gauge 0.0"
    errs "a URL that cannot be" 64 "the URL must begin with" --url bogus:// metrics --textfile "$dir/bogus.prom"
    figure_of "$dir/bogus.prom" "the alert sees it too" "rowlock_up gauge 0.0"
    rm "$dir/bogus.prom"
    errs "a folder that is not there" 74 "No such file" metrics --textfile "$dir/none/rowlock.prom"
    errs "a folder in the file's place" 74 "not a regular file" metrics --textfile "$dir"
    ln -s rowlock.prom "$dir/link"
    errs "a link in its place is not replaced" 74 "not a regular file" metrics --textfile "$dir/link"
    errs "an empty pattern" 64 "1 to 255 bytes" metrics --match ''
    errs "a pattern that is too long" 64 "1 to 255 bytes" metrics --match "$hostile*"
}

# A signal that the system sends at the first byte. 25 is XFSZ.
killed_at_once() {
    (ulimit -c 0; ulimit -f 0; exec "$command" --url sqlite:/no/such/folder/x.db metrics --textfile "$1") >/dev/null 2>&1
    [ $? = $((128 + 25)) ]
}

left_behind() {
    local dir=$work/left i
    mkdir -p "$dir"
    echo old >"$dir/rowlock.prom"
    for i in 1 2 3; do ok "a writer is killed before it has written ($i)" killed_at_once "$dir/rowlock.prom"; done
    is "the old file stays" "$(cat "$dir/rowlock.prom")" old
    # Under a sanitizer the writer is killed before it makes the file.
    exec 8>>"$dir/.rowlock.prom.new"
    is "one file is left behind, and not three" "$(LC_ALL=C ls -A "$dir")" $'.rowlock.prom.new\nrowlock.prom'
    flock 8
    errs "a writer that is frozen is not disturbed" 74 "another process is writing it" metrics --textfile "$dir/rowlock.prom"
    is "its file stays" "$(cat "$dir/rowlock.prom")" old
    exec 8>&-
    exits "when it is gone, the next one writes" 0 metrics --textfile "$dir/rowlock.prom"
    is "and removes what was left" "$(ls -A "$dir")" rowlock.prom
    echo foreign >"$work/foreign"
    ln -s "$work/foreign" "$dir/.rowlock.prom.new"
    exits "a link under that name is not followed" 74 metrics --textfile "$dir/rowlock.prom"
    same "it stays" "$(readlink "$dir/.rowlock.prom.new")" "$work/foreign"
    same "and what it leads to is not written" "$(<"$work/foreign")" foreign
    name=$(printf '%250s' x | tr ' ' x).prom
    exits "a long name has room for the other one" 0 metrics --textfile "$dir/$name"
}

whole() {
    local text
    text=$(<"$1")
    [[ $text == "# HELP rowlock_up "* && ${text##*$'\n'} == "rowlock_lock_grants_total{"* ]]
}

slowly() { LD_PRELOAD=$work/slow.so ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 "$@"; }

# Some of the writers are killed. All take their time, and write the file in parts.
several_writers() {
    local file=$work/several/rowlock.prom i writers=() looks=0 torn=0
    mkdir -p "$work/several"
    for i in one two three; do rl run "$i" true; done
    "$command" metrics --match '*' --textfile "$file"
    cat >"$work/slow.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
ssize_t write(int fd, const void *text, size_t size)
{
    size_t half = size > 1000 ? size / 2 : size;
    /* Time: a slow writer. The slower, the more do others come between. */
    ssize_t written = ((ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, text, half);
    usleep(half < size ? 20000 : 0);
    return written;
}
END
    ok "a library that slows them down" "${CC:-cc}" -shared -fPIC -o "$work/slow.so" "$work/slow.c" -ldl
    for i in 1 2 3 4; do
        for _ in 1 2 3 4; do
            # 74: others were before it, for too long.
            until slowly "$command" metrics --match "$([ $i = 1 ] && echo one || echo '*')" --textfile "$file"; do
                status=$?
                [ $status = 74 ] || { echo "status $status" >>"$work/several.failed" && break; }
            done
            slowly timeout -s KILL 0.0$((i + 2)) "$command" metrics --match '*' --textfile "$file"
        done >/dev/null 2>&1 &
        writers+=($!)
    done
    while kill -0 "${writers[@]}" 2>/dev/null; do
        whole "$file" || torn=$((torn + 1))
        looks=$((looks + 1))
        sleep 0.01
    done
    wait "${writers[@]}"
    is "several writers at once: each look finds a whole file" "$torn of $looks" "0 of $looks"
    ok "and all have written" test ! -e "$work/several.failed"
    exits "another one" 0 metrics --match '*' --textfile "$file"
    is "leaves nothing else" "$(ls -A "$work/several")" rowlock.prom
}

# each_holds TOKEN: does each member have the grant? A grant needs a majority only. A renewal gives it to the others.
each_holds() { rl renew x --owner me --token "$1" --ttl 1h; rl metrics --match x; [ "$(grep -c '^rowlock_lock_held{.* 1$' <<<"$out")" = 3 ]; }

members() {
    local at=$work/members file
    mkdir -p "$at"
    ROWLOCK_URL="sqlite:$at/1.db sqlite:$at/2.db sqlite:$at/3.db"
    exits "three databases" 0 install
    exits "are a quorum" 0 quorum-join
    exits "with a lock" 0 acquire x --owner me --ttl 1h
    until_true each_holds "$out"
    measures "metrics of a quorum" --match '*'
    for file in 1 2 3; do
        figure "each member" "rowlock_up gauge member='$file' 1.0"
        figure "has the lock" "rowlock_lock_held gauge member='$file' name='x' 1.0"
    done
    mv "$at/2.db" "$at/away"
    errs "one of them is away" 78 "member 2" metrics
    figure_now "it is down" "rowlock_up gauge member='2' 0.0"
    figure "the others are up" "rowlock_up gauge member='3' 1.0"
    figure "and have the lock" "rowlock_locks gauge kind='exclusive' member='1' state='held' 1.0"
}

no_file() {
    unset ROWLOCK_URL
    export XDG_STATE_HOME=$work/no-state
    errs "without any database" 78 "does not exist" metrics
    figure_now "nothing is up" "rowlock_up gauge 0.0"
    ok "and nothing is created" test ! -e "$XDG_STATE_HOME"
    export ROWLOCK_URL
}

for_each_database empty_tables locks files jobs_of_a_host jobs_with_names rules database_away
export ROWLOCK_URL=sqlite:$work/a.db
rl install
no_room
left_behind
several_writers
members
no_file
rl acquire $'esc\e[31m\xc2\x85\xe2\x80\xae' --owner o
prints "what a terminal would obey is escaped" 0 'name="esc\\x1b[31m\\xc2\\x85\\xe2\\x80\\xae"' metrics --match 'esc*'
same "and not printed" "$(grep -c $'\e' <<<"$out")" 0
done_testing
