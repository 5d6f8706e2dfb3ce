#!/usr/bin/env bash
# Two releases at once on the same tables: this one, and a stand-in for the next (make-level2), before, during
# and after `rowlock upgrade` of the next. One history of all their grants is judged.
. "$(dirname "$0")/../cli/cli.sh"

build=${ROWLOCK_TEST_BUILD:-build}
[ -x "$build/level2/rowlock" ] || skip_all "the next level is not built"
client=$build/tests/upgrade/client
next_client=$build/level2/tests/upgrade/client

# next CHECK…: with the command of the next release.
next() { command=$build/level2/rowlock "$@"; }

query() { # query SQL: of these tables
    local prefix=${ROWLOCK_URL##*rowlock_prefix=}
    echo "${1//rowlock_/$prefix};" | sql_client
}

# What is written down is taken and let go in turn, under growing tokens. Prints what is not so.
judge() {
    awk '$1 == "B" { if (open) print "two at once: " open " and " $2
                     if ($2 <= last) print "token " $2 " after " last
                     open = last = $2 }
         $1 == "E" { if ($2 != open) print "end of " $2 " in " open; open = "" }' "$1"
}

# grants_of FILE N: how many of each level there are behind line N.
grants_of() { tail -n +"$(($2 + 1))" "$1" | awk '$1 == "B" { n[$3]++ } END { print n[1] + 0, n[2] + 0 }'; }
lines() { wc -l <"$history"; }

# Both levels have had grants behind line N.
enough=$([ -z "${ROWLOCK_TEST_LONG:-}" ] && echo 5 || echo 20)
both_since() {
    local one two
    read -r one two <<<"$(grants_of "$history" "$1")"
    [ "$one" -ge "$enough" ] && [ "$two" -ge "$enough" ]
}

# Clients that stay, and commands that come and go.
start_crowd() {
    local i
    crowd=()
    for i in 1 2; do
        "$client" "$ROWLOCK_URL" same "$history" 1 2>>"$work/crowd.err" &
        crowd+=($!)
        "$next_client" "$ROWLOCK_URL" same "$history" 2 2>>"$work/crowd.err" &
        crowd+=($!)
        come_and_go $i 2>>"$work/crowd.err" &
        crowd+=($!)
    done
}

come_and_go() {
    local program=$command
    [ "$1" = 1 ] || program=$build/level2/rowlock
    trap 'over=1' TERM
    over=
    while [ -z "$over" ]; do
        "$program" run -w 20s same -- sh -c "echo \"B \$ROWLOCK_TOKEN $1\"; echo \"E \$ROWLOCK_TOKEN $1\"" \
            >>"$history" </dev/null || echo "run of level $1 exits with $?" >&2
    done
}

stop_crowd() {
    local pid bad=0
    kill "${crowd[@]}"
    for pid in "${crowd[@]}"; do
        wait "$pid" || bad=$((bad + 1))
    done
    same "no client is told of a failure" "$bad$(cat "$work/crowd.err")" 0
}

together() {
    local at
    history=$work/history
    : >"$history"
    : >"$work/crowd.err"
    exits "this release installs" 0 install
    start_crowd
    holds "both releases lock, before the upgrade" until_true both_since 0
    next prints "upgrade, while they do, adds the column" 0 "done: add column" upgrade
    same "without a word of failure" "$err" ""
    has "and then sets the version" "$out" "done: set version 2"
    at=$(lines)
    holds "both lock after it" until_true both_since "$at"
    exits "this release installs, and upgrades" 0 install
    gives "and changes nothing, which it says" 0 "There is nothing to do." upgrade
    at=$(lines)
    holds "both lock after that" until_true both_since "$at"
    stop_crowd
    same "never two at once, and tokens only grow" "$(judge "$history")" ""
    # The same history with one lie in it, so that this is known to show something.
    grep -v N "$history" | sed '11{h;d};12{G}' >"$history.lie"
    holds "a lie in it would be found" test -n "$(judge "$history.lie")"
}

finding() { # finding ITEM: "verdict value" in the answer of check --json
    json "(map { \"\$_->{verdict} \$_->{value}\" } grep { \$_->{item} eq '$1' } @{\$d->{findings}})[0]"
}

# A handle that is granted a lock again and again, with no other client, makes the usual grant.
written_alone() {
    local pid status=0
    "$next_client" "$ROWLOCK_URL" alone "$work/alone" 2 &
    pid=$!
    until_true has_extra || status=1
    kill $pid
    wait $pid && return $status
}
has_extra() { [ "$(query "SELECT extra FROM rowlock_tokens WHERE name = 'alone'")" = 2 ]; }

# Up to PostgreSQL 14 everybody may create in the schema of these tables, which is a warning.
foreign() { finding objects | grep ^bad; }

after_it() {
    rl check --json
    has "check of this release: the tables are of version 2" "$(finding tables)" "ok version 2, compat 1, code 2"
    same "which it calls compatible" "$(finding upgrade)" "ok the tables are newer, and compatible"
    same "and nothing in them foreign" "$(foreign)" ""
    next rl check --json
    same "check of the next: upgraded" "$(finding upgrade)" "ok not needed"
    same "as if it had installed them" "$(foreign)" ""
    holds "its usual grant writes the new column" written_alone
    query "UPDATE rowlock_meta SET version = 3, compat = 2"
    errs "tables that need level 2 are refused by this release, with the reason" 78 \
        "need a library of level 2, but this one has level 1: upgrade rowlock" list
    exits "by install too" 78 install
    exits "and by upgrade" 78 upgrade
    next exits "not by the next" 0 list
    query "UPDATE rowlock_meta SET version = -7, compat = 1"
    errs "a version that no rowlock has written is refused as that" 78 "of version -7, which no rowlock has written" install
    query "UPDATE rowlock_meta SET version = 2"
}

# says N: upgrade has said so often that it waits.
says() { [ "$(grep -c 'waiting for other transactions: session' "$work/bg.err")" -ge "$1" ]; }

# A transaction that has guarded a lock keeps its tables as they are.
blocked() {
    local pid pids
    [ "$db" != sqlite ] || return 0
    ROWLOCK_URL=$(private_url "$(url_of "$db")" "blocked_$$_")
    export ROWLOCK_URL
    exits "other tables of this release" 0 install
    exits "a lock" 0 run guarded -- true
    start_client
    say BEGIN
    say "SELECT token FROM rowlock_tokens WHERE name = 'guarded' LIMIT 1 $([ "$db" = mysql ] && echo LOCK IN SHARE MODE || echo FOR SHARE)"
    next start upgrade
    holds "upgrade names the session in its way" until_true says 1
    : >"$history"
    "$client" "$ROWLOCK_URL" mine "$history" 1 2>"$work/client.err" &
    pids=($!)
    "$next_client" "$ROWLOCK_URL" yours "$history" 2 2>>"$work/client.err" &
    pids+=($!)
    holds "it tries again and again" until_true says 4
    holds "both releases get locks meanwhile" until_true both_since 0
    kill "${pids[@]}"
    wait "${pids[@]}"
    same "others of both releases go on meanwhile" "$(cat "$work/client.err")" ""
    same "and get each lock that they ask for" "$(grep -c N "$history")" 0
    same "nothing is done yet" "$(query "SELECT version FROM rowlock_meta")" 1
    say COMMIT
    stop_client
    ends "when the transaction is over, upgrade goes on" 0 "$pid"
    same "to its end" "$(query "SELECT version FROM rowlock_meta")" 2
}

# On a dry run nothing is changed, and what it prints does the same in the database's own shell.
by_hand() {
    ROWLOCK_URL=$(private_url "$(url_of "$db")" "hand_$$_")
    export ROWLOCK_URL
    exits "tables for a DBA" 0 install
    next prints "a dry run says what is to be done" 0 "to do: set version 2" upgrade --dry-run
    same "and does not do it" "$(query "SELECT version FROM rowlock_meta")" 1
    next rl upgrade --sql
    printf '%s\n' "$out" | sql_client
    next gives "what --sql prints does it all" 0 "There is nothing to do." upgrade
    next silent "and locks work" 0 run by-hand -- true
}

for_each_database together after_it blocked by_hand
done_testing
