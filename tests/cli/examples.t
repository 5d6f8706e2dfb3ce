#!/usr/bin/env bash
# The examples work, and the demo finds everything as it tells it. On each database.
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

demo() {
    # Other builds, such as those with sanitizers, are not put where people find them.
    if [ -x build/rowlock ]; then
        holds "the demo tells the truth" examples/demo.sh
    fi
}

all() {
    nightly
    [ "$db" != postgres ] || adopting
    demo
}

for_each_database all
done_testing
