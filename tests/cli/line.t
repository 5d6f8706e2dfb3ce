#!/usr/bin/env bash
# Locks that are shared, counted, or several at once; their queues; `wait`. On each database.
. "$(dirname "$0")/cli.sh"

# hold TAG WORD…: `run WORD…` in the background, with a job that says it has begun and stays until it is told to go.
stay='echo began >"$0"; while [ ! -e "$0.go" ]; do sleep 0.05; done; exit 7'
declare -A pids
hold() {
    rm -f "$work/$1" "$work/$1".*
    as=$1 start run "${@:2}" -- sh -c "$stay" "$work/$1"
    pids[$1]=$pid
}

began() { until_true test -s "$work/$1" || tap_note "no job: $(cat "$work/$1.err")"; }

# holding TAG WORD…: the same, and the job has begun.
holding() { hold "$@"; began "$1"; }

let_go() {
    touch "$work/$1.go"
    finished "${pids[$1]}"
}

sharing() {
    holding reader1 -s doc
    holding reader2 --shared doc
    holds "two share a lock" test -s "$work/reader2"
    silent "which keeps out a client that wants it alone, silently" 75 run -n doc true
    errs "a client that counts its holders is told of another kind, though no client waits" 75 shared run -n --permits 2 doc true
    answers "list tells the kind" 0 'join " ", map { $_->{kind} . ($_->{permits} // "-") } @$d' "shared- shared-" list --json
    counts "show tells all holders, and of what kind they are" 0 2 '^kind  *shared$' show doc
    hold writer doc
    holds "a writer stands in line" until_true queued doc 1
    silent "a client behind the writer does not overtake, though it would share, silently as well" 75 run -n -s doc true
    errs "which -v explains, by the next in the queue" 75 "'doc' goes to sh[" run -n -v -s doc true
    exits "unless it wants to be unfair" 0 run -n -s --unfair doc true
    counts "show tells the line with places" 0 1 '^waiter  *1\. sh\[[0-9]*\]@.* wants exclusive' show doc
    answers "as does its JSON, in an array of its own" 0 \
        '@{$d->{grants}} . " " . join " ", map { "$_->{position}$_->{kind}" } @{$d->{waiters}}' "2 1exclusive" show doc --json
    let_go reader1
    same "a reader ends" "$status" 7
    let_go reader2
    began writer
    holds "the writer gets it when the last one has" test -s "$work/writer"
    let_go writer
    same "and ends" "$status" 7
    exits "acquire shares, too" 0 acquire doc -s --owner one
    gets_above "with another, and a token of its own" "$out" acquire doc -s --owner two
}

counting() {
    local tokens
    holding permit1 --permits 2 pool
    holding permit2 --permits 2 pool
    holds "two have two permits" test -s "$work/permit2"
    exits "a third finds none left" 75 run -n --permits 2 pool true
    errs "a client that says 3 is contradicted, by how many the others say" 75 "2 permits" run -n --permits 3 pool true
    exits "at once, though it would wait" 75 run --permits 3 pool true
    exits "-E goes for that as well" 9 run -E 9 --permits 3 pool true
    answers "acquire --json tells the holder in the way, and its permits" 75 '$d->{result} . $d->{holder}{permits} . $d->{holder}{kind}' \
        "mismatch2counted" acquire pool --permits 3 -n --json
    counts "list shows how many there are" 0 2 '^pool .* 2 permits ' list
    exits "break wants to know which of two" 64 break pool
    rl list --json
    tokens=$(json 'join " ", map { $_->{token} } grep { $_->{name} eq "pool" } @$d')
    rl break pool
    has "and names the one" "$err" "--if-token ${tokens% *}: 2 permits"
    has "and the other" "$err" "--if-token ${tokens#* }: 2 permits"
    exits "of which it takes one" 0 break pool --if-token "${tokens% *}"
    exits "so there is room for another" 0 run -w 60 --permits 2 pool true
    let_go permit2
    same "while the other one's job goes on" "$status" 7
    let_go permit1 # has been ended, or is now: its lock was lost either way
    same "and the one's does not" "$status" 76
}

ordering() {
    local i all=()
    holding first queue
    for i in 1 2 3; do
        "$command" run queue -- sh -c 'echo "$1" >>"$0"' "$work/order" $i 2>/dev/null &
        all+=($!)
        holds "number $i stands in line" until_true queued queue $i
    done
    exits "list --waiters is a table" 0 list --waiters
    same "with these headings" "$(head -n 1 <<<"$out" | tr -s ' ' | sed 's/ $//')" \
        "NAME POSITION WANTS WAITER FOR TICKET NOTE"
    same "and one row for each" "$(grep -c '^queue  *[123]  *exclusive  *sh\[' <<<"$out")" 3
    counts "list --waiters --names names their lock once" 0 1 '^queue$' list --waiters --names
    rl list --waiters --json
    same "in the order of positions and tickets" \
        "$(json 'my @w = grep { $_->{name} eq "queue" } @$d; my @t = map { $_->{ticket} } @w;
            join(" ", map { $_->{position} } @w) . ($t[0] < $t[1] && $t[1] < $t[2] ? " rising" : " not rising")')" "1 2 3 rising"
    same "whose processes are ours" "$(json 'join " ", map { $_->{pid} } grep { $_->{name} eq "queue" } @$d')" "${all[*]}"
    # A waiter of a busy machine may renew its ticket late.
    holds "with exact times" until_true json_is 'my ($w) = grep { $_->{name} eq "queue" } @$d; $w->{since_us} =~ /^\d{16}$/ &&
        $w->{since_at} =~ /Z$/ && $w->{waited_ms} >= 0 && $w->{remaining_ms} > 0' 1 list --waiters
    errs "the holder in the way is told with the queue, and its length" 75 "(3 in the queue)" run -n -v queue true
    let_go first
    wait "${all[@]}"
    same "they are served in the order of their coming" "$(tr '\n' ' ' <"$work/order")" "1 2 3 "
    holds "and the line is gone" queued queue 0
}

several() {
    local lines tokens long
    long=$(printf 'x%.0s' {1..256})
    rl run n3 true # so that tokens differ
    exits "several names are got at once" 0 run n2 "n 1" n3 -- sh -c \
        'printf "%s\n" "$ROWLOCK_NAME" "$ROWLOCK_TOKEN" "$ROWLOCK_OWNER" "$ROWLOCK_EXPIRES_AT"; "$0" list --json' "$command"
    mapfile -t lines <<<"$out"
    same "ROWLOCK_NAME has them in lines, as they were given" "${lines[*]:0:3}" "n2 n 1 n3"
    tokens=$(tail -n +9 <<<"$out")
    same "ROWLOCK_TOKEN has their tokens, and ROWLOCK_OWNER the owner of all" "${lines[*]:3:4}" "$(json \
        'my %g = map { $_->{name} => $_ } @$d; join " ", (map { $g{$_}{token} } "n2", "n 1", "n3"), $g{n3}{owner}' "$tokens")"
    same "ROWLOCK_EXPIRES_AT is the end of the first lease" "${lines[7]/./}" \
        "$(json '(sort map { $_->{expires_us} } grep { $_->{name} =~ /^n/ } @$d)[0]' "$tokens")"
    same "the owner is 128 bits" "${#lines[6]}" 32
    exits "or what --owner says" 0 run --owner us n2 n3 -- sh -c 'for n in n2 n3; do
        "$0" verify $n --token "$(printf "%s" "$ROWLOCK_TOKEN" | tail -n 1)"; done; echo "$ROWLOCK_OWNER"' "$command"
    same "in the environment as well" "$out" "us"
    holding some n3 n2
    exits "while one is held none is got" 75 run -n n1 n2 -- true
    exits "not even the free one" 0 run -n n1 true
    errs "-v says which is missing, and its holder" 75 "'n2' is held by sh[" run -n -v n1 n2 n4 -- true
    hold more --ttl 60s n1 n2
    holds "a client waits for several" until_true queued n2 1
    # At the moment at which it looks at both it may be in the way.
    holds "holds none of them meanwhile" until_true "$command" run -n n1 true
    let_go some
    began more
    holds "until all are free" test -s "$work/more"
    rl break n2
    ends "a job that has lost one of several is ended" 76 "${pids[more]}"
    has "with the reason" "$(cat "$work/more.err")" "the lock 'n2' was lost"
    exits "and the others are given back" 0 run -n n1 true
    errs "one of several that is found lost at the end is 76, by its name" 76 "run 'n2': the lock was lost" \
        run n1 n2 -- sh -c '"$0" break n2 >/dev/null; exit 5' "$command"
    errs "a name that is given twice is refused, with the reason" 64 "'n1' is named twice" run n1 n2 n1 -- true
    exits "so is one that is too long" 64 run n1 "$long" -- true
    exits "several can be shared" 0 run -n -s doc n1 -- true
    exits "a command that is not there is 127" 127 run n1 n2 -- "$work/not-there"
    exits "and leaves none of them behind" 0 run -n n1 n2 n3 -- true
}

cancelling() {
    local words
    holding holder busy
    for words in "run busy true" "run -s busy true" "run free busy -- true" "acquire busy --owner impatient"; do
        # shellcheck disable=SC2086 # they are words
        start $words
        holds "$words stands in line" until_true queued busy 1
        killed "Ctrl-C ends the waiting" INT 130 "$pid"
        holds "and leaves no ticket" queued busy 0
    done
    start run busy true
    until_true queued busy 1
    killed "so does SIGTERM" TERM 143 "$pid"
    holds "without a ticket as well" queued busy 0
    exits "nor does a wait leave one that is over" 75 run -w 300ms busy true
    holds "in the line" queued busy 0
    let_go holder
}

circling() {
    rl acquire knife --owner A
    rl acquire fork --owner B
    start acquire fork --owner A
    holds "one waits for the other" until_true queued fork 1
    errs "the client that would close the circle is told of it, in words" 75 "would never end" acquire knife --owner B
    answers "in JSON, too, by its name" 75 '$d->{result}' "deadlock" acquire knife --owner B --json
    end "$pid"
    rl break knife
    rl break fork
}

waiting() {
    silent "wait does not wait for a free lock, and says nothing" 0 wait nobodys
    holding holder house
    silent "wait -n finds it held, and says nothing" 75 wait -n house
    exits "so does one whose time is over" 75 wait -w 200ms house
    exits "-E changes that status" 5 wait -w 0 -E 5 house
    errs "-v names the holder, with process and lease" 75 "'house' is held by sh[" wait -v -n house
    start_until waiting wait -v house
    counts "it takes no ticket, as the list shows" 0 0 '^house ' list --waiters
    let_go holder
    ends "it ends when the lock is free" 0 "$pid"
    exits "and has taken nothing" 0 run -n house true
    rl acquire house --owner dead --ttl 300ms
    exits "a lease that runs out is the end as well" 0 wait -w 60 house
    rl acquire house --owner alive --ttl 1h
    start_until waiting wait -v house
    killed "Ctrl-C ends it" INT 130 "$pid"
    exits "a name that is not acceptable is 64" 64 wait ""
    rl break house
}

# A waiter that is killed cannot take its ticket along.
dying() {
    local name
    for name in grave tomb; do
        holding holder $name
        "$command" run $name -- true 2>/dev/null &
        pid=$!
        until_true queued $name 1
        kill -9 $pid
        finished $pid
        let_go holder
    done
}

none_is_left() { rl sweep; json_is 'scalar @$d' 0 list --waiters; }

burying() {
    exits "the lock goes to the next when a dead one's ticket is over" 0 run -w 60 grave true
    holds "the last ticket of a queue is swept" until_true json_is '$d->{waiters} >= 1' 1 sweep
    holds "and in the end none is left" until_true none_is_left
    prints "a sweep speaks of tickets, in words, too" 0 ", 0 tickets of dead waiters" sweep
}

for_each_database install_tables dying sharing counting ordering several cancelling circling waiting burying
done_testing
