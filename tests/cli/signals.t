#!/usr/bin/env bash
# `rowlock run` and signals: while it waits, while its command runs, on a terminal, and kill -9. On each database.
. "$(dirname "$0")/cli.sh"

# A job that writes down which signals it gets.
listen='for s in HUP INT QUIT TERM USR1 USR2 WINCH; do trap "echo $s >>\"$0.got\"" $s; done
trap "exit 7" ALRM; echo $$ >"$0"; while :; do sleep 0.05; done'

waiting() {
    local signal holder
    start run held --ttl 60s -- sleep 300
    holder=$pid
    until_true "$command" show held
    for signal in INT TERM HUP QUIT USR1; do
        start_until waiting run -v held -- touch "$work/never"
        killed "SIG$signal ends the waiting" $signal $((128 + $(kill -l $signal))) "$pid"
    done
    holds "whose command never ran" test ! -e "$work/never"
    start_until waiting acquire -v held --owner impatient
    killed "acquire takes it likewise" INT 130 "$pid"
    same "and prints nothing" "$out" ""
    nohup "$command" run -v -w 1s held true >/dev/null 2>"$work/nohup.err" </dev/null &
    pid=$!
    until_true grep -q waiting "$work/nohup.err"
    killed "a SIGHUP that nohup has ignored is ignored" HUP 75 $pid
    end "$holder"
    exits "nothing of all that is left behind" 0 run -n held true
    answers "in the table, either" 0 'scalar grep { $_->{name} ne "stopper" } @$d' 0 list --json
}

# Signals that come at any moment of a run that gets the lock at once: none may leave a grant behind.
any_moment() {
    local i wrong=
    for i in $(seq 1 25); do
        start run -n moment --ttl 1h -- true
        sleep "0.0$(printf '%02d' $((i * 7 % 40)))"
        kill -INT "$pid" 2>/dev/null
        finished "$pid"
        case $status in 0 | 130) ;; *) wrong+=" $status" ;; esac
    done
    same "a signal at any moment gives 130, or comes too late" "$wrong" ""
    exits "and no grant is left behind" 0 run -n moment true
}

collector() {
    timeout 120 python3 -c 'import ctypes, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
sys.exit(subprocess.call(sys.argv[1:]))' "$@"
}

forwarding() {
    local signal got
    got=$work/listener
    rm -f "$got" "$got.got"
    begun "$got" run --ttl 4h --grace 1h listener -- sh -c "$listen" "$got"
    for signal in HUP INT QUIT TERM USR1 USR2 WINCH; do
        kill -s $signal "$pid"
        holds "SIG$signal is passed on to the command" until_true grep -qx $signal "$got.got"
    done
    holds "which goes on if it likes" kill -0 "$(cat "$got")"
    killed "until it ends as it likes" ALRM 7 "$pid"
    exits "and leaves the lock free" 0 run -n listener true
    begun "$got.child" run group -- sh -c 'sleep 300 & echo $! >"$0.child"; echo x >"$0"; wait' "$got"
    killed "a signal ends the command" TERM 143 "$pid"
    holds "and its children, since it is sent to all of the group" until_true gone "$(cat "$got.child")"
    begun "$got.deaf" run --ttl 60s --grace 8s --min-hold 1h deaf -- \
        sh -c 'trap "exit 5" TERM; (trap "" TERM; exec sh -c "echo \$\$ >\"\$0\"; exec sleep 300" "$0") & wait' "$got.deaf"
    killed "a child that ignores SIGTERM is killed after --grace, and the job's status stays" TERM 5 "$pid"
    holds "and the child is gone" until_true gone "$(cat "$got.deaf")"
    exits "and the lock is free, in spite of --min-hold" 0 run -n deaf true
    # The parent of rowlock gets the orphans, and does not collect them, like process 1 of many containers.
    collector "$command" run --ttl 4h --grace 1h orphan -- sh -c 'trap "exit 3" TERM; sh -c "echo x >\"\$0\"; exec sleep 300" "$0" &
        until [ -s "$0" ]; do sleep 0.01; done; kill -TERM $PPID; wait' "$got.orphan"
    same "an orphan that is dead does not take the --grace" "$?" 3
}

# died COMMAND…: the signal that ended it, 0 if it exited; as its parent sees it.
died() { perl -e 'open STDERR, ">", "/dev/null"; system @ARGV; print $? & 127' -- "$@"; }

dying() {
    local signal
    for signal in INT QUIT TERM HUP USR1 ALRM KILL SEGV; do
        same "run dies of the SIG$signal that ended its command" \
            "$(died "$command" run dying -- sh -c "kill -$signal \$\$")" "$(kill -l $signal)"
    done
    same "and not if that exits with 130 by itself" "$(died "$command" run dying -- sh -c 'exit 130')" 0
    same "a signal that ends --min-hold ends it, too" \
        "$(died sh -c '(until [ -s "$1" ] && ! kill -0 "$(cat "$1")"; do sleep 0.05; done; kill -TERM $$) &
            exec "$0" run --min-hold 1h dying sh -c "echo \$\$ >\"\$0\"" "$1"' "$command" "$work/short")" 15
    rl acquire dying --owner somebody
    same "and one that ends the waiting" \
        "$(died sh -c '(until "$0" list --waiters --names | grep -q .; do :; done; kill -INT $$) & exec "$0" run dying true' "$command")" 2
    rl break dying
    exits "nothing is left behind" 0 run -n dying true
    holds "nor a core file" test ! -e core
}

begin_stopping() {
    as=stopper start run stopper --ttl 60s -- sh -c 'kill -STOP $$; exit 4'
    stopper=$pid
}

# The first one began before all other tests.
stopping() {
    holds "a command that stops is talked about" until_true grep -q "was stopped" "$work/stopper.err"
    until_true renewed stopper
    exits "it keeps its lock" 75 run -n stopper true
    killed "SIGCONT is passed on to it" CONT 4 "$stopper"
    start run stopper -- sh -c 'kill -TSTP $$; exit 4'
    ends "one that was to be suspended goes on at once" 4 "$pid"
    start_until "was stopped" run stopper -- sh -c 'kill -STOP $$; exit 4'
    killed "a stopped one can be ended" TERM 143 "$pid"
}

# kill -9 of the holder: what the next one gets, and when, is read from the table.
killing() {
    local job token expires acquired
    job=$work/victim
    begun "$job" run victim --ttl 60s -- sh -c 'echo $$ >"$0"; exec sleep 300' "$job"
    kill -9 "$pid"
    finished "$pid"
    holds "kill -9 of run takes its command along" until_true gone "$(cat "$job")"
    exits "the lock is not free before the lease ends" 75 run -n victim true
    expires=$(($(date +%s%6N) + 1000000))
    expire victim $expires
    rl show victim --json
    token=$(json '$d->{grants}[0]{token}')
    gets_above "but when it has ended, with a greater token" "$token" acquire victim -w 60 --owner next
    rl show victim --json
    acquired=$(json '$d->{grants}[0]{acquired_us}')
    holds "by the database's clock not a moment sooner" test "$acquired" -ge "$expires"
}

# typed KEYS JOB…: what is seen on a terminal when KEYS are typed after the job has said "ready", or
# while it waits. script(1) is the terminal. Sets $status and $out.
typed() {
    local keys=$1 line
    shift
    printf -v line '%q ' "$@"
    : >"$work/screen"
    rm -f "$work/over"
    {
        until_true grep -Eq '^(ready|rowlock: .*(waiting|giving up))' "$work/screen"
        printf '%b' "$keys"
        until_true test -e "$work/over"
    } | {
        SHELL=/bin/sh timeout 60 script -qefc "$line" "$work/screen" >/dev/null 2>&1
        echo $? >"$work/over"
    }
    status=$(<"$work/over")
    out=$(<"$work/screen")
}

terminal() {
    local shell job
    needs script terminal || return
    typed 'hello\n' "$command" run tty -- sh -c 'echo ready; read line; echo "read: $line"'
    given "the command can read from the terminal, and its status is passed on" 0 "$out" "read: hello"
    # A shell that has just forked, and gets the signal before its child is there, waits for the child.
    typed '\003' "$command" run tty -- sh -c 'echo ready; exec sleep 300'
    same "Ctrl-C ends it" "$status" 130
    for shell in sh bash; do
        typed '\003' $shell -c '"$0" run tty -- sh -c "echo ready; exec sleep 300"; echo next line' "$command"
        same "and the script that called it ($shell)" "${out/next line/}" "$out"
    done
    # It starts nothing: a shell that is about to start a command cannot stop, and does not say so.
    job='$SIG{INT} = sub { print "interrupted\n"; exit 5 }; print "ready\n"; sleep 1 while 1'
    typed '\032\003' "$command" run tty -- perl -e "\$| = 1; $job"
    has "Ctrl-Z does not suspend it" "$out" "not suspended"
    given "it goes on and can be interrupted, with its own status" 5 "$out" "interrupted"
    typed 'typed\n' sh -c '"$0" run tty true; echo ready; read line; echo "read: $line"' "$command"
    has "afterwards the terminal is the caller's again" "$out" "read: typed"
    # Time: the run is mostly stopped by then. One that fg finds earlier reads all the same.
    typed 'hello\n' bash -c 'set -m; "$0" run tty -- sh -c "echo ready; read line; echo read: \$line" & sleep 0.5; fg' "$command"
    has "a command in the background that was stopped for the terminal goes on with fg" "$out" "read: hello"
    rl acquire tty --owner somebody
    for shell in "run -n tty true" "acquire -n --owner me tty"; do
        # shellcheck disable=SC2086 # several words
        typed '' "$command" $shell
        has "on a terminal $shell names the holder, and how long it holds" "$out" "'tty' is held by rowlock["
        has "in one line" "$out" "its lease lasts"
    done
    typed '\003' "$command" run tty true
    given "on a terminal the waiting is explained, and Ctrl-C ends it" 130 "$out" "'tty' is held by rowlock["
    for shell in sh bash; do
        typed '\003' $shell -c '"$0" run tty true; echo next line' "$command"
        same "and the script that called it ($shell)" "${out/next line/}" "$out"
    done
    rl break tty
}

for_each_database install_tables begin_stopping waiting any_moment forwarding dying stopping killing \
    terminal
done_testing
