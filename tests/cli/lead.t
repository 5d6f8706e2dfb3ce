#!/usr/bin/env bash
# `rowlock lead` and `leader`: the next one leads when the leader resigns, loses the lock or dies. On each database.
. "$(dirname "$0")/cli.sh"
own_servers

# A job that leaves the number of its term, and stays.
stay='echo "$ROWLOCK_TOKEN" >>"$0"; exec sleep 300'

has_terms() { [ "$(ran "$1")" -ge "$2" ]; }

# leads WHO NAME OPTION…: in the background. Sets $pid.
leads() {
    # Time: the next renewal, after 5 s, finds the loss. A machine may stand still for 8 s more, as --grace is short.
    "$command" lead --ttl 15s --grace 1s "${@:2}" -- sh -c "$stay" "$work/$1" 2>"$work/$1.err" </dev/null &
    pid=$!
}

leader_is() { json_is '$d->{leader} ? $d->{leader}{note} : "none"' "$2" leader "$1"; }

changes() {
    local one other
    errs "before anybody leads there is no leader" 75 "there is none" leader throne
    answers "which JSON says, too" 75 'defined $d->{leader} ? 1 : 0' 0 leader throne --json
    leads one throne --note one:5432
    one=$pid
    until_true has_terms one 1
    prints "the leader is told, with its note" 0 " one:5432" leader throne
    has "and the number of its term" "$out" "$(<"$work/one") sh[$one]@"
    leads other throne --note other:5432
    other=$pid
    until_true queued throne 1
    kill -USR1 "$other"
    kill -USR1 "$one"
    until_true has_terms other 1
    holds "SIGUSR1 makes the leader resign, and the next in the queue leads" leader_is throne other:5432
    holds "the leader that resigned waits again" until_true queued throne 1
    has "and says so" "$(<"$work/one.err")" "SIGUSR1 asks to resign; ending the job"
    holds "a signal to resign means nothing to a waiter" gone_not "$other"
    killed "SIGTERM ends the leader, as it ends run" TERM 143 "$other"
    until_true has_terms one 2
    holds "then the first leads again" leader_is throne one:5432
    holds "in a later term" test "$(tail -n 1 "$work/one")" -gt "$(tail -n 1 "$work/other")"
    rl break throne
    until_true has_terms one 3
    has "a leader that loses the lock ends the job" "$(<"$work/one.err")" "the lock was lost; ending the job"
    same "and leads again later" "$(ran one)" 3
    killed "until it is ended" TERM 143 "$one"
    exits "then there is no leader" 75 leader throne
}

gone_not() { ! gone "$1"; }

# The job ends by itself each time.
again() {
    local held='printf "%s\n" "$ROWLOCK_HELD" | tr -cd "(" | wc -c >>"$0.held"; echo "$ROWLOCK_TOKEN" >>"$0"; exit 5'
    start lead brief -- sh -c "$held" "$work/brief"
    # Else the signal may come while the third job ends.
    until_true grep -q "in 4.0s" "$work/bg.err"
    same "a job that ends is started again" "$(sort -n -u "$work/brief" | head -n 3 | wc -l)" 3
    same "in one lock each time" "$(sort -u "$work/brief.held" | tr -d ' ')" 1
    has "after a pause that grows" "$(<"$work/bg.err")" "exit status 5); back to the queue in 1.0s"
    has "twice as long the second time" "$(<"$work/bg.err")" "back to the queue in 2.0s"
    killed "a signal ends the pause" TERM 143 "$pid"
    exits "and nothing is held" 75 leader brief
    exits "a command that is not there ends it" 127 lead brief -- "$work/absent"
    start_until 'exit status 138' lead signals -- sh -c 'kill -USR1 $$; echo not ended >"$0"' "$work/signals"
    holds "the job has the signals of any other program" test ! -e "$work/signals"
    killed "until that is ended" INT 130 "$pid"
}

# A signal that ends the job ends the leader, also when the job makes a status of it.
ended() {
    local signal content='trap "exit 0" TERM; echo "$ROWLOCK_TOKEN" >>"$0"; sleep 300 & wait'
    begun "$work/content" lead content -- bash -c "$content" "$work/content"
    killed "a job that makes 0 of a signal ends the leader with 0" TERM 0 "$pid"
    begun "$work/hup" lead hup -- sh -c "$stay" "$work/hup"
    killed "SIGHUP ends it if it ends the job" HUP 129 "$pid"
    content='trap "echo reloaded >>\"$0.reload\"" HUP; echo "$ROWLOCK_TOKEN" >>"$0"; while :; do sleep 0.1; done'
    begun "$work/reload" lead reload -- bash -c "$content" "$work/reload"
    kill -HUP "$pid"
    until_true test -s "$work/reload.reload"
    holds "and else it is for the job alone" leader_is reload ""
    killed "which goes on" TERM 143 "$pid"
    rm "$work/content"
    content='trap "touch \"$0.hup\"" HUP; trap "touch \"$0.told\"; until [ -e \"$0.go\" ]; do sleep 0.1; done; exit 0" TERM; echo >"$0"
        while :; do sleep 0.1; done'
    begun "$work/content" lead --ttl 10m --grace 4m content -- bash -c "$content" "$work/content"
    kill -TERM "$pid"
    until_true test -e "$work/content.told"
    kill -HUP "$pid"
    until_true test -e "$work/content.hup"
    touch "$work/content.go"
    ends "a signal that comes after SIGTERM does not make up for it" 0 "$pid"
    for signal in TERM INT; do
        begun "$work/deaf.$signal" lead --grace 200ms deaf -- sh -c 'trap "" TERM INT; sleep 300 & echo $! >"$0"; wait; sleep 300' \
            "$work/deaf.$signal"
        killed "SIG$signal ends a job that ignores it, after --grace, which is said" $signal 137 "$pid" "does not end; killing it"
        holds "and its children" until_true gone "$(<"$work/deaf.$signal")"
        exits "and the lock is free" 75 leader deaf
    done
    # The job's child stays until the grace is over.
    begun "$work/child" lead --grace 2s child -- sh -c '(trap "" TERM; exec sleep 300) & echo $$ >"$0"; wait' "$work/child"
    kill -USR1 "$pid"
    until_true gone "$(<"$work/child")"
    killed "SIGTERM ends a leader that is about to resign" TERM 143 "$pid"
    leads holder waits
    local holder=$pid
    until_true has_terms holder 1
    exits "--wait limits the wait" 75 lead -w 100ms waits -- true
    start lead waits -- true
    until_true queued waits 1
    killed "a signal ends the wait" TERM 143 "$pid"
    end "$holder"
    errs "each lock has a leader of its own" 64 "one name" lead a b -- true
    exits "there is no lead without a wait" 64 lead -n a -- true
}

seen_lines() { [ "$(wc -l <"$work/seen")" -ge "$1" ]; }

watching() {
    # Their leader does not change.
    full "leader --watch" leader nobody --watch
    full "leader --watch --json" leader nobody --watch --json
    "$command" leader seen --watch --interval 50ms >"$work/seen" 2>"$work/seen.err" </dev/null &
    local watcher=$!
    until_true grep -qx -- - "$work/seen"
    leads seen1 seen --note here
    until_true grep -q ' here$' "$work/seen"
    killed "a leader comes" TERM 143 "$pid"
    until_true seen_lines 3
    rl acquire seen --owner me --ttl 1h --note there
    until_true seen_lines 4
    same "and goes: --watch prints a line at each change, and no more" \
        "$(sed 's/^[0-9]* .* \(here\|there\)$/\1/' "$work/seen" | tr '\n' ' ')" "- here - there "
    end "$watcher"
    exits "--interval needs --watch" 64 leader seen --interval 1s
    begun "$work/bg.out" leader seen --watch --json
    same "with --json it is an object a line" "$(json '$d->{leader}{note}' "$(<"$work/bg.out")")" there
    end "$pid"
}

# The database goes away under a leader.
outage() {
    own_server || return
    begun "$work/away" lead --ttl 2s away -- sh -c "$stay" "$work/away"
    server stop
    until_true grep -q "back to the queue" "$work/bg.err"
    has "the job is ended before its lease is over" "$(<"$work/bg.err")" "could not be renewed in time; ending the job"
    until_true grep -q "still waiting" "$work/bg.err"
    has "the leader waits for the database" "$(<"$work/bg.err")" "the server is away; still waiting"
    server start
    until_true has_terms away 2
    holds "and leads again, in a later term" test "$(tail -n 1 "$work/away")" -gt "$(head -n 1 "$work/away")"
    killed "until it is ended" TERM 143 "$pid"
}

for_each_database install_tables changes again ended watching outage
done_testing
