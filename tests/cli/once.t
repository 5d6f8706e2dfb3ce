#!/usr/bin/env bash
# `rowlock run --once`: what is done under a key is done once; what failed, or was killed, is done by the next run;
# and keys are swept. On each database.
. "$(dirname "$0")/cli.sh"

# A job that leaves a line each time, and ends as the file beside it says; 0 if there is none.
job='echo ran >>"$0"; exit "$(cat "$0.status" 2>/dev/null || echo 0)"'

# once KEY NAME OPTION…: that job, with a file of the name's. Sets $status, $out and $err.
once() { rl run "$2" --once "$1" "${@:3}" -- sh -c "$job" "$work/$2"; }

# once_ran "what holds" N COUNT KEY NAME: has_run with that.
once_ran() { has_run "${@:1:3}" "$5" run "$5" --once "$4" -- sh -c "$job" "$work/$5"; }

done_once() {
    once_ran "a new key: the job runs" 0 1 k1 daily
    same "and nothing is said" "$out$err" ""
    once_ran "the same key: it does not, and that is fine" 0 1 k1 daily
    same "nothing is said of that either" "$out$err" ""
    once k1 daily -v
    has "with -v it is" "$err" "'k1' was done before, at 2"
    has "and what follows" "$err" "nothing is run"
    once_ran "another key: it runs" 0 2 k2 daily
    has_run "without a key, too" 0 3 daily run daily -- sh -c "$job" "$work/daily"
    holds "the lock is free after all that" free daily
    race "several at once: it is run once" --once k10
}

mismatches() {
    errs "the same key for another command is 64, which is said" 64 "another command" run daily --once k1 -- touch "$work/never"
    exits "a command of one word more or less" 0 run daily --once words -- true "a b"
    exits "is another" 64 run daily --once words -- true a b
    holds "nothing of that runs" test ! -e "$work/never"
    holds "and the lock is free" free daily
    exits "a key of no bytes is 64" 64 run daily --once "" true
    errs "a name and a key that are together too long are, too, which is said" 64 "too long by 1 bytes" run daily --once "$(printf '%248s' x)" true
    exits "what just fits is not" 0 run daily --once "$(printf '%247s' x)" true
    exits "it needs the lock for itself: no -s" 64 run -s daily --once k0 true
    exits "nor --permits" 64 run --permits 2 daily --once k0 true
    answers "several locks and a key, in progress meanwhile" 0 '$d->[0]{state}' "in progress" \
        run b a --once both -- "$command" once list b a --json
    exits "of several locks in another order" 0 run a b --once both -- true
    exits "are once" 0 run a b --once both -- true
}

# Keys belong to the lock, and to the list of locks.
scopes() {
    local name
    for name in "scope one" scope:two 9:scope; do
        once "one key" "$name"
        once_ran "each lock has keys of its own ($name)" 0 1 "one key" "$name"
    done
    has_run "so have two locks together" 0 1 both run "scope one" scope:two --once "one key" -- sh -c "$job" "$work/both"
    has_run "in each order" 0 2 both run scope:two "scope one" --once "one key" -- sh -c "$job" "$work/both"
    rl run 1 --once "1:2" -- sh -c "$job" "$work/parts"
    has_run "no name and key are taken for others" 0 2 parts run 1:1 --once "2" -- sh -c "$job" "$work/parts"

    counts "keys can be listed, those of one lock below a heading" 0 2 . once list scope:two
    has "with the lock's name and the state" "$out" "scope:two  done "
    has "and the key" "$out" "one key"
    answers "or of two, also as JSON" 0 'join "|", scalar @$d, map { @$_{qw(name key state)} } @$d' "1|scope one, scope:two|one key|done" \
        once list "scope one" scope:two --json
    answers "or all there are" 0 '@$d > 5' 1 once list --json
    answers "of a lock without keys, there are none" 0 'scalar @$d' 0 once list nothing --json

    exits "a key can be forgotten" 0 once forget scope:two "one key"
    errs "once, after that there is no such key" 1 "no such key" once forget scope:two "one key"
    answers "which JSON says, too, in one word" 1 '$d->{result}' none once forget scope:two "one key" --json
    once_ran "the job runs again then" 0 2 "one key" scope:two
    once_ran "that of another lock does not" 0 1 "one key" "scope one"
    exits "a key that is in no lock's scope" 1 once forget "one key"
    exits "list and forget are all there is" 64 once remember x
    exits "forget wants a key" 64 once forget
    once k3 progress
    begun "$work/progress.began" run progress --once k4 --ttl 1h -- sh -c 'echo >"$0.began"; exec sleep 300' "$work/progress"
    answers "a key in progress is listed as that" 0 'join "|", map { $_->{state} } @$d' "done|in progress" once list progress --json
    end "$pid"
}

failures() {
    echo 3 >"$work/failing.status"
    once_ran "a job that fails passes its status on" 3 1 k3 failing
    once_ran "and is tried again" 3 2 k3 failing
    rm "$work/failing.status"
    once_ran "until it succeeds" 0 3 k3 failing
    once_ran "once" 0 3 k3 failing
    exits "a job that is not there" 127 run lacking --once k4 -- "$work/shell" -c "$job" "$work/lacking"
    ln -s "$(command -v sh)" "$work/shell"
    has_run "is run when it is" 0 1 lacking run lacking --once k4 -- "$work/shell" -c "$job" "$work/lacking"
    exits "a job that a signal ends" 137 run killed --once k5 -- sh -c 'kill -9 $$'
    exits "can be given up for another" 0 run killed --once k5 -- true
    exits "one that --max-hold ends" 76 run --max-hold 300ms long --once k6 -- \
        sh -c 'trap "exit 0" TERM; sleep 300 & wait'
    exits "is not done, with any status" 0 run long --once k6 -- true
}

# The job says that it has begun, and stays.
stay='echo ran >>"$0"; [ -e "$0.short" ] || exec sleep 300'

begin() { begun "$work/$1" run "$1" --once "$2" --ttl 1h -- sh -c "$stay" "$work/$1"; }

interruptions() {
    begin cut k7
    exits "while it runs, others are busy" 75 run -n cut --once k7 -- sh -c "$stay" "$work/cut"
    killed "a signal ends the job" TERM 143 "$pid"
    touch "$work/cut.short"
    has_run "the next run does it, for the second time" 0 2 cut run cut --once k7 -- sh -c "$stay" "$work/cut"
    begin dead k8
    killed "rowlock itself is killed" KILL 137 "$pid"
    touch "$work/dead.short"
    exits "as long as its lease lasts the key is not reached" 75 run -n dead --once k8 -- sh -c "$stay" "$work/dead"
    answers "and is in progress" 0 '$d->{state}' "in progress" once show dead k8 --json
    rl break dead
    answers "its grant is gone, and so is the run" 0 '"$d->{state} $d->{remaining_ms}"' "given up 0" once show dead k8 --json
    rl acquire dead --owner another --ttl 1h
    answers "also while another client has the lock" 0 '$d->[0]{state}' "given up" once list dead --json
    rl break dead
    has_run "after that the next run takes it over, for the second time" 0 2 dead run -n dead --once k8 -- sh -c "$stay" "$work/dead"
    has_run "and the last, for it is done" 0 2 dead run -n dead --once k8 -- sh -c "$stay" "$work/dead"
    begin changed k14
    killed "rowlock is killed with a command" KILL 137 "$pid"
    rl break changed
    exits "that is changed: the key is free for the new one" 0 run -n changed --once k14 -- true
    errs "and done by it" 64 "rowlock once forget NAME KEY" run -n changed --once k14 -- sh -c "$stay" "$work/changed"
}

# A job that waits for a file.
wait_for='echo ran >>"$0"; until [ -e "$0.go" ]; do sleep 0.05; done'

# The lock is taken from the first, and the second takes over the key.
lost() {
    local first second
    start run lost --once k9 --ttl 1h -- sh -c "$wait_for" "$work/lost"
    first=$pid
    until_true test -s "$work/lost"
    rl break lost
    "$command" run lost --once k9 -- sh -c "$wait_for" "$work/lost" 2>"$work/second.err" &
    second=$!
    until_true grep -qz 'ran.ran' "$work/lost"
    touch "$work/lost.go"
    ends "a run that has lost the lock, and so the key, is told in words" 76 "$first" \
        "'k9' was done, but its key is gone: another run may do it as well"
    finished "$second"
    same "the run that has taken it over completes it" "$status $(<"$work/second.err")" "0 "
    errs "a run whose key is forgotten is told by its key" 76 "rowlock: run 'lost': 'k15' was done, but its key is gone" \
        run lost --once k15 -- "$command" once forget lost k15
    same "in one line" "$(wc -l <<<"$err")" 1
    has_run "and then it is done, by two, as was said" 0 2 lost run -n lost --once k9 -- sh -c "$wait_for" "$work/lost"
}

# A job that is told to end, and says that all is well, is taken at its word.
content() {
    begun "$work/content" run content --once k11 -- bash -c 'trap "exit 0" TERM; echo ran >>"$0"; sleep 300 & wait' "$work/content"
    killed "a job that makes 0 of a signal" TERM 0 "$pid"
    has_run "is done once" 0 1 content run content --once k11 -- bash -c 'trap "exit 0" TERM; echo ran >>"$0"; sleep 300 & wait' \
        "$work/content"
}

# While the job runs a DBA takes the table away.
not_taken_down() {
    [ "$db" != sqlite ] || needs sqlite3 "what cannot be told" || return
    begun "$work/untold" run untold --once k12 --ttl 1h -- sh -c "$wait_for" "$work/untold"
    echo "ALTER TABLE cli_$$_once RENAME TO cli_$$_twice" | sql_client
    touch "$work/untold.go"
    ends "that it was done cannot be told: the status says why, and so do words" 78 "$pid" \
        "'k12' was done, but may not be recorded as done"
    echo "ALTER TABLE cli_$$_twice RENAME TO cli_$$_once" | sql_client
    has_run "the next run does it again" 0 2 untold run -n untold --once k12 -- sh -c "$wait_for" "$work/untold"
}

# A claim of a higher token: of a program that uses the library, for example.
claimed_elsewhere() {
    [ "$db" != sqlite ] || needs sqlite3 "a claim of another program" || return
    begin elsewhere k13
    killed "a run is killed" KILL 137 "$pid"
    rl break elsewhere
    echo "UPDATE cli_$$_once SET token = 1000000 WHERE name = '9:elsewhere:k13'" | sql_client
    silent "a key that another program has claimed: -n says nothing" 75 run -n elsewhere --once k13 -- \
        sh -c "$stay" "$work/elsewhere"
    echo "UPDATE cli_$$_once SET changed = 2400000000000000 WHERE name = '9:elsewhere:k13'" | sql_client
    prints "a key of the future was changed now" 0 "0.0s" once list elsewhere
    errs "with -v it does" 75 "is in progress" run -nv elsewhere --once k13 -- sh -c "$stay" "$work/elsewhere"
    errs "and so does a run that would have waited for the lock" 75 "is in progress" run elsewhere --once k13 -- \
        sh -c "$stay" "$work/elsewhere"
}

sweeping() {
    answers "keys are kept for long" 0 '$d->{once}' 0 sweep --json
    answers "or are never removed" 0 '$d->{once}' 0 sweep --once-older-than never --json
    answers "a dry run removes none" 0 '$d->{once}' 0 sweep --once-older-than 1ms --dry-run --json
    once_ran "so they are known" 0 3 k1 daily
    answers "a sweep tells how many it forgets" 0 '$d->{once} > 5' 1 sweep --once-older-than 1ms --json
    once_ran "what is forgotten is done again" 0 4 k1 daily
    # Time: the key must be older than 1 ms by the real clock. More changes nothing.
    sleep 0.05
    prints "as it says to people" 0 ", 1 once key" sweep --once-older-than 1ms
    exits "a length of nothing is not accepted" 64 sweep --once-older-than 0
}

for_each_database install_tables done_once mismatches scopes failures interruptions lost content \
    not_taken_down claimed_elsewhere sweeping
done_testing
