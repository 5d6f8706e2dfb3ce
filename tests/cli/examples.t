#!/usr/bin/env bash
# The examples, the documented scripts and the manual's first example work, and the demo is true. On each database.
. "$(dirname "$0")/cli.sh"

programs=${ROWLOCK_TEST_BUILD:-$PWD/build}/examples

nightly() {
    gave "nightly works under its lock" "0 working with token 1" nightly
    rl acquire nightly --owner somebody --ttl 1h
    gave "it is content if another does" "0 somebody else is at it; good" nightly
    rl break nightly
    example nightly nosuch:thing
    given "and fails when it cannot tell, with the reason" 1 "$err" "nightly: "
}

adopting_postgres() {
    # libpq knows nothing of our own parameter.
    local plain=$ROWLOCK_TEST_POSTGRES_URL
    example adopt_postgres "$plain"
    given "adopt_postgres works with its own connection" 0 "$out" "working in database "
    rl acquire adopted --owner somebody --url "$plain"
    example adopt_postgres "$plain"
    given "and finds the lock held" 0 "$out" "is at it"
    rl break adopted --url "$plain"
    example adopt_postgres "host=127.0.0.1 port=1"
    same "it fails without a server" "$status" 1
    banking
}

# bank NAME ARGUMENT…: one transfer; $status, and what it said in $work/NAME.
bank() {
    "$programs/bank_postgres" "${@:2}" "$ROWLOCK_TEST_POSTGRES_URL" <<<"" >"$work/$1" 2>&1
    status=$?
}

# The same, but it stands still beyond its lease while another one is made. Descriptor 7 is its Return key.
bank_paused() {
    local name=$1
    mkfifo "$work/$name.return"
    "$programs/bank_postgres" "${@:2}" "$ROWLOCK_TEST_POSTGRES_URL" <"$work/$name.return" >"$work/$name" 2>&1 &
    pid=$!
    exec 7>"$work/$name.return"
    until_true grep -q "press Return" "$work/$name"
    kill -STOP "$pid"
    bank rival
    kill -CONT "$pid"
    echo >&7
    exec 7>&-
    finished "$pid"
}

cents_of_a() { sed -n 's/^a has \(-*[0-9]*\),.*/\1/p' "$work/$1"; }

banking() {
    bank first
    same "bank_postgres moves money" "$status $(tail -n 1 "$work/first")" "0 committed"
    bank_paused guarded
    given "paused beyond its lease it fails with the guard's reason" 1 "$(<"$work/guarded")" "has been granted again"
    bank second
    same "and has written nothing" "$(cents_of_a second)" $(($(cents_of_a first) - 1000))
    bank_paused careless --no-guard
    same "without a guard it commits" "$status $(tail -n 1 "$work/careless")" "0 committed"
    bank third
    same "and what the other has done is lost" "$(cents_of_a third)" $(($(cents_of_a second) - 1000))
}

# Its databases are files in the working folder.
over_a_quorum() {
    for turn in 1 2; do
        (cd "$work" && "$programs/quorum") >"$work/out" 2>"$work/err"
        same "quorum ends well" "$?" 0
        same "with a token of all members" "$(<"$work/out")" "working with token $turn"
    done
}

pooled() {
    example pool "$ROWLOCK_URL"
    given "pool ends well: its threads did all orders" 0 "$out" "16 threads did 128 orders"
    counts "and no lock is left" 0 0 '"order' list --json
}

looping() {
    rl acquire "loop one" --owner somebody --ttl 1h
    command=$programs/event_loop start "$ROWLOCK_URL" "loop one" "loop two"
    until_true grep -q "free to do something else" "$work/bg.out"
    has "event_loop has one lock while it waits for the other" "$(<"$work/bg.out")" "loop two is ours"
    rl break "loop one"
    ends "and ends when it has both" 0 "$pid"
    has "the one as well" "$out" "loop one is ours"
    counts "and gives them back" 0 0 '"loop' list --json
}

rows=20000

make_prices() {
    local engine=
    [ "$db" != mysql ] || engine='ENGINE = InnoDB'
    sql_client <<END
DROP TABLE IF EXISTS prices;
CREATE TABLE prices (id INTEGER PRIMARY KEY, price NUMERIC(10, 2) NOT NULL, version BIGINT NOT NULL) $engine;
INSERT INTO prices VALUES (0, 100, 1) $(seq -f ', (%.0f, 100, 1)' $((rows - 1)));
END
}

# Adds 1000 to one row after the other, once to each, and tells at the end to how many.
edit_prices() {
    local i
    for ((i = 0; i < rows; i++)); do
        [ ! -e "$work/enough" ] || break
        echo "UPDATE prices SET price = price + 1000, version = version + 1 WHERE id = $((i * 7919 % rows));"
    done
    echo "$i" >"$work/edited"
}

count_prices() { sql_client <<<"SELECT count(*) FROM prices WHERE $1;"; }

# Begins, and kills it when it has told progress three times. It may be done by then.
killed_in_time() {
    local pid
    make_prices
    [ -p "$work/progress" ] || mkfifo "$work/progress"
    "$programs/reprice" "$ROWLOCK_URL" >"$work/reprice" 2>"$work/progress" &
    pid=$!
    exec 7<"$work/progress"
    head -n 3 <&7 >"$work/chunks"
    kill -KILL "$pid"
    exec 7<&-
    finished "$pid"
    [ "$status $(wc -l <"$work/chunks")" = "137 3" ] && ! free reprice
}

repricing() {
    local writer
    until_true killed_in_time
    same "reprice is killed after three chunks" $? 0
    rm -f "$work/enough"
    edit_prices | sql_client &
    writer=$!
    gave_err "another may not begin while its lease lasts" "1 reprice: another one is at work" reprice
    rl break reprice
    example reprice "$ROWLOCK_URL"
    touch "$work/enough"
    wait "$writer"
    given "then it goes on from where it was" 0 "$out" ", 0 failed, resumed"
    has "with every row" "$out" "$rows rows, $rows written, 0 left"
    # Raised and edited, in this order or the other; or only raised.
    same "each price is raised once, and no edit is lost" "$(count_prices \
        "(version = 2 AND price = 105) OR (version = 3 AND price IN (1105, 1155))")" "$rows"
    same "of all that were made meanwhile" "$(count_prices "version = 3")" "$(<"$work/edited")"
    sql_client <<<"DROP TABLE prices;"
}

# The blocks of sh in docs/OPERATIONS.md, in their order. Those that run have the programs that they call.
shell_block() {
    awk -v number="$1" '/^```/ { inside = $0 == "```sh" && ++n == number; next } inside' docs/OPERATIONS.md >"$work/block.sh"
    sed "$2" "$work/block.sh" >"$work/run.sh"
    out=$(cd "$work" && PATH=$work/bin:$PATH bash -u run.sh 2>"$work/err")
    status=$?
    err=$(<"$work/err")
}

documented() {
    local before
    mkdir -p "$work/bin"
    ln -s "$command" "$work/bin/rowlock"
    printf '#!/bin/sh\nrowlock verify deploy && echo "$0 $ROWLOCK_TOKEN"\n' | tee "$work/build.sh" >"$work/publish.sh"
    chmod +x "$work/build.sh" "$work/publish.sh"
    shell_block 1 ''
    same "the documented script goes through" "$status $err" "0 "
    same "and holds its lock meanwhile" "$out" "$(printf './build.sh 1\n./publish.sh 1')"
    exits "it has given it back" 0 acquire deploy --owner somebody -n
    shell_block 1 's/-w 5m/-w 0.2/'
    same "a second one waits, and ends with 75" "$status $out" "75 "
    rl break deploy
    shell_block 1 's|^\./build.sh|rowlock break deploy >broken|'
    same "one that lost its lock does not publish" "$status $out" "76 "
    before=$("$command" check | grep -o 'installation .*')
    shell_block 2 ''
    same "what to do after a restore succeeds" "$status $err" "0 "
    holds "and the copy has an identity of its own" test "$("$command" check | grep -o 'installation .*')" != "$before"
}

# The programs that need tables of their own.
with_rows() {
    [ "$db" != sqlite ] || needs sqlite3 "restock, reprice, parcels" || return
    restocking
    repricing
    sending
}

restocking() {
    local items=300
    sql_client <<END
DROP TABLE IF EXISTS items;
CREATE TABLE items (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL, version BIGINT NOT NULL);
INSERT INTO items VALUES (1, 5, 1)$(seq -f ', (%.0f, 5, 1)' 2 $items);
END
    for _ in 1 2 3; do "$programs/restock" "$ROWLOCK_URL" 1 $items >/dev/null 2>>"$work/err" & done
    wait
    same "restock beside itself adds to each item once for each" \
        "$(sql_client <<<"SELECT count(*) FROM items WHERE stock = 35 AND version = 4;")" $items
    has "and passes by what is not there" "$("$programs/restock" "$ROWLOCK_URL" 299 310)" "round 1: 2 items, 0 to do again"
    sql_client <<<"DROP TABLE items;"
}

# example NAME ARGUMENT…: runs it; sets $status, $out and $err.
example() { command=$programs/$1 rl "${@:2}"; }

# gave "what holds" "N TEXT" NAME ARGUMENT…: at $ROWLOCK_URL it exits with N, and prints TEXT. gave_err: on standard error.
gave() { example "$3" "$ROWLOCK_URL" "${@:4}"; same "$1" "$status $out" "$2"; }
gave_err() { example "$3" "$ROWLOCK_URL" "${@:4}"; same "$1" "$status $err" "$2"; }

# prints_now PATTERN ARGUMENT…: does the command print a line like it?
prints_now() { "$command" "${@:2}" | grep -q "$1"; }

operating() {
    local token
    rl acquire worn --owner somebody --ttl 0.2
    rl acquire taken --owner somebody --ttl 1h
    token=$out
    begun "$work/bg.err" acquire taken --owner patient -w 60 -v
    until_true prints_now '^taken ' list --waiters
    gave_err "operator looks" "0 " operator look
    has "and shows a grant" "$out" "grant of taken: owner somebody, token $token, valid"
    has "and a waiter" "$out" "waiter for taken: patient"
    has "and a finding" "$out" "isolation is "
    has "and its verdict" "$(tail -n 1 <<<"$out")" "fit for locks"
    example operator "$ROWLOCK_URL" count 'take?'
    given "operator counts" 0 "$out" "taken: 1 holders, 1 waiters"
    gave "operator breaks a grant by its token" "0 somebody had it, with token $token" operator break taken
    ends "and the waiter gets the lock" 0 "$pid"
    example operator "$ROWLOCK_URL" break "no such lock"
    given "a name that was never granted is NONE, and it says so" 1 "$err" "ROWLOCK_NONE"
    until_true prints_now "worn .*expired" list
    example operator "$ROWLOCK_URL" sweep
    same "operator sweeps" "$status $(rl list --json && grep -c worn <<<"$out")" "0 0"
    gave_err "operator raises the tokens" "0 " operator restored
    rl break taken
    gets_above "above all that there were" $((token + 1000000)) acquire taken --owner somebody
    rl break taken
    example operator "$ROWLOCK_URL" script
    given "operator prints the script" 0 "$out" "CREATE TABLE"
    example operator "$ROWLOCK_URL"
    given "without a verb it tells its version and its usage" 1 "$err" "rowlock $("$command" --version | sed -n '1s/.* //p')"
}

handing_over() {
    gave_err "handover goes through" "0 " handover baton
    has "the parent acquires" "$out" "parent: granted until "
    has "the child renews and works" "$out" ", renewed"
    exits "and gives the lock back" 0 acquire baton --owner somebody -n
    gave "handover does not get a lock that is held" "1 " handover baton
    example handover "$ROWLOCK_URL" baton another 1
    given "and a child with an old grant finds it lost" 1 "$err" "handover: ROWLOCK_LOST"
    rl break baton
}

# pipeline WORD STEPS: in the background, and waits until it says WORD; sets $pid.
pipeline() {
    command=$programs/pipeline start "$ROWLOCK_URL" left right "$2"
    until_true grep -q "$1" "$work/bg.out"
}

piping() {
    example pipeline "$ROWLOCK_URL" left right 3
    given "pipeline does its steps" 0 "$out" "3 of 3 steps done"
    has "and tells what it has counted" "$(tail -n 1 <<<"$out")" "1 tries, 2 grants, waited 0 ms, "
    rl acquire right --owner somebody --ttl 1h
    pipeline waiting 3
    same "it names the holder" "$(<"$work/bg.out")" "somebody has right: waiting"
    killed "and an interrupt ends the wait" INT 1 "$pid" "pipeline: ROWLOCK_CANCELLED"
    pipeline waiting 3
    rl break right
    ends "it goes on when the holder is gone" 0 "$pid"
    has "to its end" "$out" "3 of 3 steps done"
    pipeline ours 100000
    rl break left
    ends "it stops when a lock is broken" 1 "$pid" "left is lost"
    counts "and has given the other back" 0 0 'left\|right' list --json
    pipeline ours 100000
    killed "an interrupt ends the work" INT 1 "$pid" "pipeline: ROWLOCK_CANCELLED "
    counts "and both locks are free" 0 0 'left\|right' list --json
}

paying() {
    gave "once pays" "0 paid: receipt of 12 for 77" once pay 77 12
    gave "and shows the receipt the second time" "0 paid before: receipt of 12 for 77" once pay 77 12
    gave "another amount is a mismatch" "1 was asked for with another amount" once pay 77 13
    gave "a payment can fail" "0 the payment failed" once pay 78 0
    gave "and is made later" "0 paid: receipt of 9 for 78" once pay 78 9
    gave "once lists" "0 77: paid, amount 12
78: paid, amount 9" once list
    gave_err "once forgets" "0 " once forget 77
    example once "$ROWLOCK_URL" forget 77
    given "what is there" 1 "$err" "once: ROWLOCK_NONE"
    gave "once sweeps what is old" "0 0 removed" once sweep 1
    gave "and what is not" "0 1 removed" once sweep 0
}

make_parcels() {
    local engine='' bytes=BLOB time=TIMESTAMP
    [ "$db" != mysql ] || { engine='ENGINE = InnoDB' time=DATETIME; }
    [ "$db" != postgres ] || bytes=BYTEA
    sql_client <<END
DROP TABLE IF EXISTS parcels;
DROP TABLE IF EXISTS items;
CREATE TABLE parcels (id INTEGER PRIMARY KEY, sent $time NULL, version BIGINT NOT NULL) $engine;
CREATE TABLE items (parcel INTEGER, number INTEGER, content VARCHAR(50), weight DOUBLE PRECISION, fragile BOOLEAN,
    picture $bytes, version BIGINT NOT NULL, PRIMARY KEY (parcel, number)) $engine;
END
}

# parcels_are NAME CONDITION N: the parcel is as CONDITION says, and has N items.
parcels_are() {
    same "$1" "$(sql_client <<<"SELECT count(*) FROM parcels WHERE $2;") $(sql_client <<<"SELECT count(*) FROM items;")" "1 $3"
}

sending() {
    make_parcels
    gave_err "parcels packs" "0 " parcels pack 7
    parcels_are "a parcel and two items" "sent IS NULL" 2
    same "each with its values" "$(sql_client <<<"SELECT count(*) FROM items WHERE
        (content = 'book' AND weight = 1.5 AND NOT fragile AND length(picture) = 3) OR
        (content = 'vase' AND weight = 0.25 AND fragile AND picture IS NULL);")" 2
    gave "and not twice" "1 was packed before" parcels pack 7
    sql_client <<<"UPDATE parcels SET version = 5;"
    gave "parcels sends what is in it" "0 item: book
item: vase" parcels send 7
    parcels_are "the time is noted, and the version moves" "sent = '2026-12-24 18:00:00' AND version = 6" 2
    gave_err "parcels takes the items out" "0 " parcels clear 7
    parcels_are "which moves the version of the parcel" "version = 7" 0
    example parcels "$ROWLOCK_URL" send 7
    given "an empty parcel is not sent" 1 "$err" "parcels: ROWLOCK_GONE"
    parcels_are "and stays as it was" "version = 7" 0
    sql_client <<<"DROP TABLE parcels; DROP TABLE items;"
}

adopting() { "adopting_$db"; }

adopting_sqlite() {
    local file=$work/adopted.db
    export ROWLOCK_URL=sqlite:$file
    example adopt_sqlite "$file"
    same "adopt_sqlite acquires and releases in its transactions" "$status $out" "0 begun
done"
    exits "the lock is free after them" 0 acquire report --owner somebody -n
    example adopt_sqlite "$file"
    same "and while it is held the report is not begun" "$status $out" "1 another program makes the report"
    rl break report
    example adopt_sqlite "$work/no/such/folder"
    same "it fails without a file" "$status" 1
}

adopting_mysql() {
    local plain=${ROWLOCK_TEST_MYSQL_URL%%\?*} place port
    place=${plain#*@}
    port=$(expr "$place" : '[^:]*:\([0-9]*\)')
    export ROWLOCK_URL=$plain
    example adopt_mysql 127.0.0.1 "$port" root "$(basename "$place")"
    same "adopt_mysql commits and releases at once" "$status $(tail -n 1 <<<"$out")" "0 committed, and the lock is free"
    exits "the lock is free after it" 0 acquire visits --owner somebody -n
    rl break visits
    # Its UPDATE waits for this transaction.
    start_client
    say "BEGIN"
    say "SELECT n FROM visits LOCK IN SHARE MODE"
    command=$programs/adopt_mysql start 127.0.0.1 "$port" root "$(basename "$place")"
    until_true grep -q working "$work/bg.out"
    rl break visits
    say "ROLLBACK"
    stop_client
    ends "and one that lost its lock does not commit" 1 "$pid" "adopt_mysql: ROWLOCK_LOST"
    same "nothing of it is there" "$(sql_client <<<"SELECT n FROM visits; DROP TABLE visits;")" 1
}

# block N: lines of that literal block among the examples.
block() {
    sed -n '/^\.Sh EXAMPLES/,$p' docs/man/rowlock.1 | sed 's/\\-/-/g' |
        awk -v wanted="$1" '/^\.Ed/ { on = 0 } on { print } /^\.Bd/ { on = ++n == wanted }'
}

# typed NAME: the commands on standard input, one by one.
typed() {
    local line
    while read -r line; do
        (PATH=$work/bin:$PATH && bash -c "$line") >"$work/out" 2>"$work/err" </dev/null
        status=$?
        holds "$1: $line" test $status = 0
        [ $status = 0 ] || tap_note "$(cat "$work/out" "$work/err")"
    done
}

# The first example of rowlock(1), for two hosts: each step succeeds, and the job is done once.
follow() {
    local host
    mkdir -p "$work/figures"
    printf '#!/bin/sh\necho "$ROWLOCK_PERIOD" >>%s\n' "$work/reports" >"$work/bin/report.sh"
    chmod +x "$work/bin/report.sh"
    # The servers of tests are not durable, which check calls bad.
    typed "an operator" < <(block 1 | grep -v '^export\|check$')
    for host in first second; do
        typed "the $host host" < <(block 2 | sed -nE "s|/var/lib/prometheus/node-exporter|$work/figures|
            s/^([^ ]+ +){5}app +//p")
    done
    same "there is one report" "$(grep -c 'T02:00:00Z$' "$work/reports")" 1
    holds "and figures" grep -q '^rowlock_up 1' "$work/figures/rowlock.prom"
    typed "anybody" < <(block 3)
    prints "the day is done" 0 'done' once list report
}

for_each_database install_tables nightly documented pooled over_a_quorum looping operating handing_over piping paying \
    with_rows follow adopting
# Its leases run out if the machine stands still. Other builds, such as those with sanitizers, are not put where
# people find them.
if [ -n "${ROWLOCK_TEST_LONG:-}" ] && [ -x build/rowlock ]; then
    ok "the demo tells the truth" examples/demo.sh
fi
done_testing
