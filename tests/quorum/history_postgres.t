#!/usr/bin/env bash
# Clients of a quorum of three PostgreSQL servers, whose members die and freeze, while clients die
# and stand still, and the clock of the first member jumps. ROWLOCK_TEST_GRANTS: how many grants at
# least (300).
set -u
# shellcheck source=tests/quorum/crew.sh
. "$(dirname "$0")/crew.sh"

clock=$(new_server_dir clock)/clock
preload=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
chmod 755 "${clock%/clock}"
set_clock() {
    echo "$1" >"$clock.new"
    chmod 644 "$clock.new"
    mv "$clock.new" "$clock"
}
# name and token of each row of a member
rows_of() { postgres_shell "${dirs[$1]}" "SELECT name || ' ' || token FROM rowlock_locks" | sort; }

# Its clock jumps forward by a minute, and back. A jump may end its leases, so this member is the
# one that fails then, for all clients: a lease that another member lacks must be over before, and
# after it the new ones. Among rivals a member may lack the row of a grant until its next renewal.
# The judge is told of these grants.
jump() {
    touch "$crew_folder/calm"
    sleep "$lease"
    set_clock "$(printf %+d $((RANDOM % 120 - 60)))"
    comm -3 <(rows_of 1) <(rows_of 2) | sed 's/^\t*/X /' >>"$crew_folder/history"
    sleep "$lease"
    rm "$crew_folder/calm"
}

# Only the first server has this clock.
make_postgres() {
    postgres_make "$1" "$2" -c fsync=off
    if [ -n "$preload" ] && [ ${#dirs[@]} = 1 ]; then
        sed -i "1i env\\
LD_PRELOAD=$preload\\
FAKETIME_TIMESTAMP_FILE=$clock\\
FAKETIME_NO_CACHE=1\\
FAKETIME_DONT_FAKE_MONOTONIC=1" "$1/argv"
    fi
}
set_clock +0
make_member postgres
make_member postgres
make_member postgres
CREW_VIEWS=${CREW_VIEWS:-200}
CREW_DEATHS=1
export CREW_VIEWS CREW_DEATHS
crew_begin three
before=$(postgres_shell "${dirs[0]}" "SELECT extract(epoch FROM clock_timestamp())::bigint")
jump
after=$(postgres_shell "${dirs[0]}" "SELECT extract(epoch FROM clock_timestamp())::bigint")
tap_note "the clock of the first member jumped by $((after - before)) s"
crew_until "${ROWLOCK_TEST_GRANTS:-300}" jump "freeze_one 1" jump "kill_one 2" "lose_two 1 2" jump \
    "kill_one 1" "freeze_one 0"
crew_end "three PostgreSQL servers"
rm -rf "${clock%/clock}"
done_testing
