#!/usr/bin/env bash
# `rowlock run --every`: each period has one success over all hosts, by the database's clock. On each database.
# The zones are tested on SQLite: its clock is that of the process, which faketime sets.
. "$(dirname "$0")/cli.sh"

# A period that ends during no test.
long=366d

# A job that leaves its period each time, and ends as the file beside it says; 0 if there is none.
job='echo "$ROWLOCK_PERIOD" >>"$0"; exit "$(cat "$0.status" 2>/dev/null || echo 0)"'

# every "what holds" N COUNT NAME OPTION…: has_run with a run of that job.
every() { has_run "${@:1:4}" run "$4" "${@:5}" -- sh -c "$job" "$work/$4"; }

# As another host whose clock is wrong by so much. A sanitizer wants to be the first of the libraries.
elsewhere() { ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 faketime -f "$@"; }

done_in_a_period() {
    local start
    every "a new period: the job runs" 0 1 nightly --every $long
    same "and nothing is said" "$out$err" ""
    every "the same period: it does not, and that is fine" 0 1 nightly --every $long
    same "and nothing is said" "$out$err" ""
    every "nor if the run may not wait" 0 1 nightly --every $long -n -v
    start=$(<"$work/nightly")
    has "with -v it is said" "$err" "'$start' was done before, at 2"
    holds "the job was told the start of its period, in UTC" grep -qE '^[0-9]{4}-[0-9]{2}-[0-9]{2}T00:00:00Z$' \
        "$work/nightly"
    answers "the start is the key of the run" 0 'join " ", map { @$_{qw(name key state)} } @$d' "nightly $start done" \
        once list nightly --json
    every "each lock has periods of its own" 0 1 other --every $long
    every "a shorter period is another one" 0 2 nightly --every 1s
    same "the job that runs under a key of its own has no period" \
        "$("$command" run nightly --once k -- printenv ROWLOCK_PERIOD)" ""
    race "several hosts at once: it is run once" --every $long
}

next_period() {
    local runs=0
    until [ "$(ran short)" = 3 ] || [ $runs = 500 ]; do
        rl run short --every 1s -- sh -c "$job" "$work/short"
        runs=$((runs + 1))
        sleep 0.2
    done
    same "the job runs in three periods" "$(ran short)" 3
    same "once in each" "$(sort -u "$work/short" | grep -c .)" 3
}

# The job begins in a period, and ends in a later one.
crossing() {
    local wait_for='echo "$ROWLOCK_PERIOD" >>"$0"; until [ -e "$0.go" ]; do sleep 0.05; done'
    begun "$work/cross" run cross --every 1s -- sh -c "$wait_for" "$work/cross"
    until_true later_than "$(<"$work/cross")"
    touch "$work/cross.go"
    ends "a run goes on beyond the end of its period" 0 "$pid"
    answers "the period in which it began is done" 0 'join " ", map { @$_{qw(key state)} } @$d' \
        "$(<"$work/cross") done" once list cross --json
    has_run "the next period has a run of its own" 0 2 cross run cross --every 1s -- sh -c "$wait_for" "$work/cross"
}

later_than() {
    rl run clock --every 1s -- sh -c 'echo "$ROWLOCK_PERIOD"'
    [[ $out > $1 ]]
}

failing() {
    echo 3 >"$work/fails.status"
    every "a run that fails passes its status on" 3 1 fails --every $long
    every "and is repeated in the same period" 3 2 fails --every $long
    every "also if later runs must wait" 3 3 fails --every $long --retry-after 1h
    every "which they do then" 75 3 fails --every $long --retry-after 1h
    same "without a word, so that cron sends no mail" "$out$err" ""
    every "with the status of --conflict-exit-code" 0 3 fails --every $long --retry-after 1h -E 0 -v
    has "-v says why" "$err" "Z' failed "
    has "and for how long" "$err" "it is not repeated for another 59m"
    every "that is for all hosts, also without the option" 75 3 fails --every $long
    answers "the key is listed as failed" 0 '$d->[0]{state}' failed once list fails --json
    prints "as it is shown" 0 "state        failed" once show fails "$(head -n 1 "$work/fails")"
    has "with the time that is left" "$out" "repeated in  59m"
    rl once forget fails "$(head -n 1 "$work/fails")"
    every "a key that is forgotten is free" 3 4 fails --every $long --retry-after 1s
    rm "$work/fails.status"
    until_true repeated
    same "when the time is over the job is repeated" "$status $(ran fails)" "0 5"
    every "and done" 0 5 fails --every $long
    exits "a command that is not there has failed" 127 run absent --every $long --retry-after 1h -- "$work/absent"
    exits "so it is not repeated either" 75 run absent --every $long --retry-after 1h -- "$work/absent"
    exits "--once knows the pause too" 1 run pause --once k --retry-after 1h -- false
    exits "with each key" 75 run pause --once k --retry-after 1h -- false
}

# What is known of a run afterwards.
history() {
    answers "no run has succeeded" 1 '$d->{period_done} . "," . ($d->{last} // "none")' 0,none once last past --every $long --json
    LOGNAME=$'ann\xff' exits "a run fails" 3 run past --every $long -- sh -c 'exit 3'
    answers "which is kept, and whose it was" 0 'join " ", map { "$_->{state} $_->{run}{status} $_->{run}{user}" } @$d' \
        'failed 3 ann\xff' once list past --json
    prints "as it is shown, with its host" 0 "on $(uname -n), process" once show past "$(rl once list past --json; json '$d->[0]{key}')"
    errs "the period is not done" 1 "no run" once last past --every $long
    exits "another succeeds" 0 run past --every $long -- sh -c 'exit 0'
    answers "with its status and token" 0 'join " ", map { "$_->{state} $_->{run}{status} $_->{run}{token}" } @$d' \
        "done 0 2" once list past --json
    prints "the period is done" 0 "state        done" once last past --every $long
    sql_client <<<"UPDATE ${ROWLOCK_URL##*rowlock_prefix=}once SET name = '4:past:2020-01-01T00:00:00Z' WHERE name LIKE '4:past:%';"
    prints "a success of another period is the last one" 0 "2020-01-01" once last past
    exits "another run of this period fails" 1 run past --every $long -- false
    errs "and that period is not done" 1 "is not done" once last past --every $long
    errs "last needs a name" 64 "last needs a name" once last
    errs "the period belongs to last" 64 "belong to last" once list --every $long
    silent "a pause comes before the run" 0 run paused -n --jitter 10ms -- true
}

repeated() {
    rl run fails --every $long -- sh -c "$job" "$work/fails"
    [ "$status" = 0 ]
}

repaired() {
    exits "a command that is wrong fails" 1 run wrong --every $long --retry-after 1h -- false
    exits "and must wait" 75 run wrong --every $long --retry-after 1h -- false
    silent "the repaired one need not" 0 run wrong --every $long --retry-after 1h -- true
    errs "and has done the period" 0 "was done before" run wrong --every $long -v -- true
    errs "for all others too" 0 "was done before, by another command" run wrong --every $long -- false
    exits "a key of --once that failed" 1 run repair --once k --retry-after 1h -- false
    silent "is free for another command too" 0 run repair --once k -- true
}

# An operator's signal ends a job, or the job loses its lock.
interrupted() {
    local stay='echo ran >>"$0"; exec sleep 300'
    begun "$work/cut" run cut --every $long --retry-after 1h -- sh -c "$stay" "$work/cut"
    exits "while it runs, others are busy" 75 run -n cut --every $long -- sh -c "$stay" "$work/cut"
    killed "a signal ends the job" TERM 143 "$pid"
    exits "that counts as a failure" 75 run cut --every $long -- sh -c "$stay" "$work/cut"
    begun "$work/dead" run dead --every $long --retry-after 1h --ttl 1h -- sh -c "$stay" "$work/dead"
    killed "rowlock itself is killed" KILL 137 "$pid"
    rl break dead
    start run dead --every $long --retry-after 1h --ttl 1h -- sh -c "$stay" "$work/dead"
    until_true grep -qz 'ran.ran' "$work/dead"
    same "then there is no pause: the next host repeats the job" "$(ran dead)" 2
    killed "until it is ended too" TERM 143 "$pid"
    begun "$work/gone" run gone --every $long --ttl 1h -- sh -c "$stay" "$work/gone"
    killed "a run is killed" KILL 137 "$pid"
    rl break gone
    silent "the next one may be another command, such as that of a newer version" 0 run gone --every $long -- true
    errs "which has done the period" 0 "was done before" run gone --every $long -v -- true
}

keys() {
    local key
    rl run seen --every $long -- true
    rl once list seen --json
    key=$(json '$d->[0]{key}')
    prints "once show tells one key" 0 "state        done" once show seen "$key"
    has "with its name" "$out" "name         seen"
    answers "also as JSON" 0 '"@$d{qw(name key state)}"' "seen $key done" once show seen "$key" --json
    errs "a key that is not there" 1 "no such key" once show seen "${key%Z}"
    errs "nor does its beginning find it" 1 "no such key" once show seen "${key%0Z}"
    exits "show wants a key" 64 once show
    answers "once list --match finds names" 0 'join " ", map { $_->{name} } @$d' "seen" once list --match 'se?n *' --json
    answers "and keys" 0 'scalar(@$d) > 3' 1 once list --match '* ????-??-??T00:00:00Z' --json
    exits "a name that is not ASCII" 0 run naïve --once k true
    LC_ALL=C answers "a question mark is a character" 0 'scalar @$d' 1 once list --match 'na?ve k' --json
    answers "or nothing" 0 'scalar @$d' 0 once list --match 'seen' --json
    exits "only list has it" 64 once forget --match x seen "$key"
    exits "a key is forgotten" 0 once forget seen "$key"
    exits "once" 1 once forget seen "$key"
}

# A server's clock counts, and not that of the host.
clocks() {
    local shift
    [ "$db" != sqlite ] || return
    every "the job is done" 0 1 jump --every 1d
    for shift in -3d +3d; do
        elsewhere $shift "$command" run jump --every 1d -- sh -c "$job" "$work/jump"
        same "a host whose clock is wrong by ${shift}ays runs nothing" "$? $(ran jump)" "0 1"
    done
    elsewhere +3d "$command" run jump2 --every 1d -- sh -c "$job" "$work/jump2"
    same "and what it does counts for all" "$(<"$work/jump2")" "$(<"$work/jump")"
}

refusals() {
    errs "the period is done for another command too: two jobs of one name are noticed, and it is said without -v" 0 \
        "was done before, by another command; nothing is run" run nightly --every $long -- touch "$work/never"
    has "with what to do" "$err" "if these are two jobs, give each its name"
    holds "and not run" test ! -e "$work/never"
    exits "--every and --once exclude each other" 64 run x --every 1h --once k true
    exits "it needs the lock for itself: no -s" 64 run -s x --every 1h true
    exits "nor --permits" 64 run --permits 2 x --every 1h true
    exits "a period of less than a second" 64 run x --every 999ms true
    exits "or of more than 366 days" 64 run x --every 367d true
    exits "--at needs --every" 64 run x --at 02:00 true
    exits "and so does --timezone" 64 run x --timezone UTC true
    exits "--retry-after needs --every or --once" 64 run x --retry-after 1m true
    local time
    for time in 24:00 2:00 02:60 0200 "02:00 " "+2:00" "" 02:00:00; do
        errs "'$time' is no time of day" 64 "not a time of day" run x --every 1d --at "$time" true
    done
    for time in "mon" "mon " "mon  02:00" "monday 02:00" " mon 02:00" "mo 02:00" "day 02:00"; do
        errs "'$time' is no day and time" 64 "not a time of day" run x --every 7d --at "$time" true
    done
    errs "a day needs a week" 64 "whole number of weeks" run x --every 1d --at "mon 02:00" true
    errs "or several" 64 "whole number of weeks" run x --every 10d --at "mon 02:00" true
    errs "periods that do not fit into days have no time of day" 64 "divide a day" run x --every 7h --at 02:00 true
    exits "and no zone" 64 run x --every 36h --timezone UTC true
    local zone
    for zone in Europe/Bonn Europe "" ../zoneinfo/UTC /usr/share/zoneinfo/UTC CET-1CEST zone.tab; do
        errs "'$zone' is no zone" 64 "not in this host's time zone database" run x --every 1d --timezone "$zone" true
    done
    mkdir -p "$work/zones"
    [ -p "$work/zones/Fifo" ] || mkfifo "$work/zones/Fifo"
    TZDIR=$work/zones errs "nor is a file that is no regular file" 64 "not in this host's time zone database" \
        run x --every 1d --timezone Fifo true
    errs "a zone with leap seconds is refused" 64 "counts leap seconds; give 'Europe/Berlin'" \
        run x --every 1d --timezone right/Europe/Berlin true
    TZDIR=$work/zones exits "UTC needs no time zone database" 0 run utc --every 1d --timezone UTC true
    errs "a name that is too long is said to be" 64 "shorten the name" run "$(printf '%230s' x)" --every 1d true
}

# period NOW START OPTION…: at NOW the period is the one that began at START. Both are UTC, without T and Z.
period() {
    local now=$1 start=$2 got
    shift 2
    got=$(XDG_STATE_HOME=$work/state TZ=Asia/Tokyo elsewhere "@$(TZ=Asia/Tokyo date -d "$now UTC" "+%F %T")" \
        "$command" run "at $now, $*" "$@" -- printenv ROWLOCK_PERIOD 2>"$work/err")
    is "at $now, $*" "$got" "${start/ /T}Z"
    [ -n "$got" ] || tap_note "$(<"$work/err")"
}

# turn START BEFORE OPTION…: at START a period begins. Half a minute earlier it is the one that began at BEFORE.
turn() {
    period "$(date -u -d "@$(($(date -u -d "$1" +%s) - 30))" "+%F %T")" "$2" "${@:3}"
    period "$1" "$1" "${@:3}"
}

zones() {
    [ "$db" = sqlite ] || return
    unset ROWLOCK_URL
    local berlin=(--every 1d --timezone Europe/Berlin --at)
    period "2026-11-22 18:30:15" "2026-11-22 18:30:00" --every 10m
    period "2026-11-22 18:30:15" "2026-11-22 18:25:00" --every 10m --at 00:05
    period "2026-11-22 18:30:15" "2026-11-22 00:00:00" --every 1d
    period "2026-11-22 18:30:15" "2026-11-21 20:00:00" --every 1d --at 20:00
    # 1970-01-01 was a Thursday.
    period "2026-11-22 18:30:15" "2026-11-19 00:00:00" --every 7d
    period "2026-11-22 18:30:15" "2026-11-19 02:30:00" --every 7d --at 02:30
    # 1,795,372,215 s after 1970: 7h is 25,200 s.
    period "2026-11-22 18:30:15" "$(date -u -d "@$((1795372215 / 25200 * 25200))" "+%F %T")" --every 7h
    turn "2026-11-22 01:00:00" "2026-11-21 01:00:00" "${berlin[@]}" 02:00
    # The clocks go from 02:00 to 03:00 at 01:00 UTC. 02:30 comes half an hour after that.
    turn "2026-03-29 01:00:00" "2026-03-28 01:00:00" "${berlin[@]}" 02:00
    turn "2026-03-29 01:30:00" "2026-03-28 01:30:00" "${berlin[@]}" 02:30
    turn "2026-03-30 00:00:00" "2026-03-29 01:00:00" "${berlin[@]}" 02:00
    # From 03:00 to 02:00 at 01:00 UTC. So 02:30 comes twice, and the first time counts.
    turn "2026-10-25 00:30:00" "2026-10-24 00:30:00" "${berlin[@]}" 02:30
    period "2026-10-25 01:30:00" "2026-10-25 00:30:00" "${berlin[@]}" 02:30
    turn "2026-10-26 01:30:00" "2026-10-25 00:30:00" "${berlin[@]}" 02:30
    # Later on those days.
    period "2026-03-29 10:00:30" "2026-03-29 10:00:00" "${berlin[@]}" 12:00
    period "2026-10-25 11:00:30" "2026-10-25 11:00:00" "${berlin[@]}" 12:00
    # A week can begin on any day. 2026-11-22 was a Sunday, and so are the days on which the clocks change.
    local weekly=(--every 7d --timezone Europe/Berlin --at)
    turn "2026-11-22 01:00:00" "2026-11-15 01:00:00" "${weekly[@]}" "sun 02:00"
    period "2026-11-22 18:30:15" "2026-11-16 01:00:00" "${weekly[@]}" "mon 02:00"
    turn "2026-11-23 01:00:00" "2026-11-16 01:00:00" "${weekly[@]}" "mon 02:00"
    period "2026-11-22 18:30:15" "2026-11-17 01:00:00" "${weekly[@]}" "tue 02:00"
    period "2026-11-22 18:30:15" "2026-11-18 01:00:00" "${weekly[@]}" "wed 02:00"
    period "2026-11-22 18:30:15" "2026-11-19 01:00:00" "${weekly[@]}" "thu 02:00"
    period "2026-11-22 18:30:15" "2026-11-20 01:00:00" "${weekly[@]}" "Fri 02:00"
    period "2026-11-22 18:30:15" "2026-11-21 01:00:00" "${weekly[@]}" "SAT 02:00"
    turn "2026-03-29 01:30:00" "2026-03-22 01:30:00" "${weekly[@]}" "sun 02:30"
    period "2026-03-30 00:00:30" "2026-03-30 00:00:00" "${weekly[@]}" "mon 02:00"
    period "2026-10-25 00:29:30" "2026-10-18 00:30:00" "${weekly[@]}" "sun 02:30"
    period "2026-10-25 01:30:30" "2026-10-25 00:30:00" "${weekly[@]}" "sun 02:30"
    turn "2026-10-26 01:00:00" "2026-10-19 00:00:00" "${weekly[@]}" "mon 02:00"
    # Here Sunday is Saturday in UTC.
    period "2026-11-22 18:30:15" "2026-11-21 20:00:00" --every 7d --timezone Asia/Tokyo --at "sun 05:00"
    # 1970-01-05 was the first Monday.
    period "2026-11-22 18:30:15" "2026-11-09 00:00:00" --every 14d --at "mon 00:00"
    turn "2026-11-09 00:00:00" "2026-10-26 00:00:00" --every 14d --at "mon 00:00"
    # A day of 25 hours has a rest of one hour, one of 23 hours is cut.
    local quarter=(--every 6h --timezone Europe/Berlin)
    period "2026-11-22 12:00:00" "2026-11-22 11:00:00" "${quarter[@]}"
    period "2026-11-22 12:00:00" "2026-11-22 07:00:00" "${quarter[@]}" --at 02:00
    turn "2026-10-25 23:00:00" "2026-10-25 22:00:00" "${quarter[@]}"
    turn "2026-03-29 22:00:00" "2026-03-29 17:00:00" "${quarter[@]}"
    turn "2026-11-22 18:15:00" "2026-11-21 18:15:00" --every 1d --timezone Asia/Kathmandu
    period "2026-11-22 04:00:30" "2026-11-22 03:30:00" --every 1d --timezone America/St_Johns
    # Samoa had no 2011-12-30: the day after 12-29 was 12-31.
    turn "2011-12-30 12:00:00" "2011-12-29 12:00:00" --every 1d --at 02:00 --timezone Pacific/Apia
    is "the job gets TZ as it was" "$(TZ=Asia/Tokyo "$command" run z --every 1d --timezone Europe/Berlin -- printenv TZ)" \
        Asia/Tokyo
    is "or none" "$(unset TZ; "$command" run z3 --every 1d --timezone Europe/Berlin -- printenv TZ || echo none)" none
}

for_each_database install_tables done_in_a_period next_period crossing failing history repaired interrupted keys \
    clocks refusals zones
done_testing
