#!/usr/bin/env bash
# The examples work, the documented scripts too, and the demo finds everything as it tells it. On each database.
set -u
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

programs=${ROWLOCK_TEST_BUILD:-$PWD/build}/examples

nightly() {
    same "nightly works under its lock" "$("$programs/nightly" "$ROWLOCK_URL")" "working with token 1"
    rl acquire nightly --owner somebody --ttl 1h
    same "it is content if another does" "$("$programs/nightly" "$ROWLOCK_URL")" \
        "somebody else is at it; good"
    rl break nightly
    "$programs/nightly" "nosuch:thing" 2>"$work/err"
    same "and fails when it cannot tell" $? 1
    has "with the reason" "$(<"$work/err")" "nightly: "
}

adopting() {
    # libpq knows nothing of our own parameter.
    local plain=$ROWLOCK_TEST_POSTGRES_URL
    has "adopt_postgres works with its own connection" "$("$programs/adopt_postgres" "$plain")" \
        "working in database "
    rl acquire adopted --owner somebody --url "$plain"
    has "and finds the lock held" "$("$programs/adopt_postgres" "$plain")" "is at it"
    rl break adopted --url "$plain"
    "$programs/adopt_postgres" "host=127.0.0.1 port=1" 2>"$work/err"
    same "it fails without a server" $? 1
}

# bank NAME ARGUMENT…: one transfer; $status, and what it said in $work/NAME.
bank() {
    local name=$1
    shift
    "$programs/bank_postgres" "$@" "$ROWLOCK_TEST_POSTGRES_URL" <<<"" >"$work/$name" 2>&1
    status=$?
}

# The same, but it stands still beyond its lease while another one is made. Descriptor 7 is its Return key.
bank_paused() {
    local name=$1
    shift
    mkfifo "$work/$name.return"
    "$programs/bank_postgres" "$@" "$ROWLOCK_TEST_POSTGRES_URL" <"$work/$name.return" \
        >"$work/$name" 2>&1 &
    pid=$!
    exec 7>"$work/$name.return"
    until_true 20 grep -q "press Return" "$work/$name"
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
    same "paused beyond its lease it fails" "$status" 1
    has "with the guard's reason" "$(<"$work/guarded")" "has been granted again"
    bank second
    same "and has written nothing" "$(cents_of_a second)" $(($(cents_of_a first) - 1000))
    bank_paused careless --no-guard
    same "without a guard it commits" "$status $(tail -n 1 "$work/careless")" "0 committed"
    bank third
    same "and what the other has done is lost" "$(cents_of_a third)" $(($(cents_of_a second) - 1000))
}

looping() {
    rl acquire "loop one" --owner somebody --ttl 1h
    "$programs/event_loop" "$ROWLOCK_URL" "loop one" "loop two" >"$work/loop" 2>"$work/err" &
    pid=$!
    until_true 20 grep -q "free to do something else" "$work/loop"
    has "event_loop has one lock while it waits for the other" "$(<"$work/loop")" "loop two is ours"
    rl break "loop one"
    finished "$pid"
    same "and ends when it has both" "$status" 0
    has "the one as well" "$(<"$work/loop")" "loop one is ours"
    same "and gives them back" "$(rl list --json | grep -c '"loop')" 0
}

rows=20000

make_prices() {
    local engine=
    [ "$db" != mysql ] || engine='ENGINE = InnoDB'
    {
        echo "DROP TABLE IF EXISTS prices;"
        echo "CREATE TABLE prices (id INTEGER PRIMARY KEY, price NUMERIC(10, 2) NOT NULL,"
        echo "    version BIGINT NOT NULL) $engine;"
        echo "BEGIN; INSERT INTO prices VALUES (0, 100, 1)"
        seq -f ', (%.0f, 100, 1)' $((rows - 1))
        echo "; COMMIT;"
    } | sql_client
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

# Begins, and kills it when it has told progress three times.
kill_reprice() {
    local pid
    mkfifo "$work/progress"
    "$programs/reprice" "$ROWLOCK_URL" >"$work/reprice" 2>"$work/progress" &
    pid=$!
    exec 7<"$work/progress"
    head -n 3 <&7 >"$work/chunks"
    kill -KILL "$pid"
    exec 7<&-
    finished "$pid"
    same "reprice is killed after three chunks" "$status $(wc -l <"$work/chunks")" "137 3"
}

repricing() {
    local writer
    if [ "$db" = sqlite ] && ! command -v sqlite3 >/dev/null; then
        skip "$(about "reprice")" "there is no sqlite3 to make the table with"
        return
    fi
    rl install
    make_prices
    rm -f "$work/enough"
    edit_prices | sql_client &
    writer=$!
    kill_reprice
    "$programs/reprice" "$ROWLOCK_URL" 2>"$work/err" >"$work/reprice"
    same "another may not begin while its lease lasts" "$? $(<"$work/err")" \
        "1 reprice: another one is at work"
    rl break reprice
    status=0
    "$programs/reprice" "$ROWLOCK_URL" 2>"$work/err" >"$work/reprice" || status=$?
    same "then it goes on" "$status" 0
    [ "$status" = 0 ] || tap_note "$(<"$work/err")"
    touch "$work/enough"
    wait "$writer"
    has "from where it was" "$(<"$work/reprice")" ", 0 failed, resumed"
    has "with every row" "$(<"$work/reprice")" "$rows rows, $rows written, 0 left"
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
    ln -sf "$command" "$work/bin/rowlock"
    # shellcheck disable=SC2016 # for the scripts
    printf '#!/bin/sh\nrowlock verify deploy && echo "$0 $ROWLOCK_TOKEN"\n' | tee "$work/build.sh" >"$work/publish.sh"
    chmod +x "$work/build.sh" "$work/publish.sh"
    rl install
    shell_block 1 ''
    same "the documented script goes through" "$status $err" "0 "
    same "and holds its lock meanwhile" "$out" "$(printf './build.sh 1\n./publish.sh 1')"
    rl acquire deploy --owner somebody -n
    same "it has given it back" "$status" 0
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

demo() {
    # Other builds, such as those with sanitizers, are not put where people find them.
    if [ -x build/rowlock ]; then
        holds "the demo tells the truth" examples/demo.sh
    fi
}

restocking() {
    local items=300
    if [ "$db" = sqlite ] && ! command -v sqlite3 >/dev/null; then
        skip "restock" "no sqlite3 to make the table with"
        return
    fi
    {
        echo "DROP TABLE IF EXISTS items;"
        echo "CREATE TABLE items (id INTEGER PRIMARY KEY, stock INTEGER NOT NULL, version BIGINT NOT NULL);"
        echo "INSERT INTO items VALUES (1, 5, 1)$(seq -f ', (%.0f, 5, 1)' 2 $items);"
    } | sql_client
    for _ in 1 2 3; do
        "$programs/restock" "$ROWLOCK_URL" 1 $items >/dev/null 2>>"$work/err" &
    done
    wait
    same "restock beside itself adds to each item once for each" \
        "$(sql_client <<<"SELECT count(*) FROM items WHERE stock = 35 AND version = 4;")" $items
    has "and passes by what is not there" "$("$programs/restock" "$ROWLOCK_URL" 299 310)" "round 1: 2 items, 0 to do again"
    sql_client <<<"DROP TABLE items;"
}

all() {
    nightly
    restocking
    documented
    looping
    repricing
    [ "$db" != postgres ] || adopting
    [ "$db" != postgres ] || banking
    demo
}

for_each_database all
done_testing
