#!/usr/bin/env bash
# Clients of a quorum of PostgreSQL, MariaDB and SQLite, whose members die, freeze and are cut off
# from some of the clients, while clients die and stand still, and the clock of the first member
# jumps.
#
# ROWLOCK_TEST_LONG=1: with each fault in each member, and then of three PostgreSQL servers.
# ROWLOCK_TEST_GRANTS: how many grants at least (100).
. "$(dirname "$0")/crew.sh"

clock=$(new_server_dir clock)/clock
preload=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
chmod 755 "${clock%/clock}"
set_clock() {
    echo "$1" >"$clock.new"
    chmod 644 "$clock.new"
    mv "$clock.new" "$clock"
}

# Its clock jumps forward by a minute, and back. A jump may end its leases, so this member is the
# one that fails then, for all clients: a lease that another member lacks must be over before, and
# after it the new ones. Among rivals a member may lack the row of a grant until its next renewal.
# The judge is told of the grants that may have been alive then, and were not seen in both others.
jump() {
    local before after now
    touch "$crew_folder/calm"
    # Time: leases from before the jump end by the real clock. More changes nothing.
    sleep "$lease"
    before=$(us)
    comm -12 <(rows_of 1) <(rows_of 2) >"$work/safe"
    now=$(first_clock)
    set_clock "$(printf %+d $((RANDOM % 120 - 60)))"
    tap_note "the clock of the first member jumps by $(($(first_clock) - now)) s"
    after=$(us)
    # Time: the same, of those from after it.
    sleep "$lease"
    awk -v before="$before" -v after="$after" '
        FILENAME == ARGV[1] { safe[$1 " " $2] = 1; next }
        { grant = $2 " " $3 }
        $1 == "G" && NF == 6 && $4 <= after + 20000 { end[grant] = $6 }
        $1 == "H" && NF == 5 && grant in end { end[grant] = $5 }
        $1 == "E" && NF == 4 && grant in end && $4 < end[grant] { end[grant] = $4 }
        END { for (grant in end) if (end[grant] >= before - 20000 && !(grant in safe)) print "X " grant }
    ' "$work/safe" "$crew_folder/history" >"$work/bare"
    cat "$work/bare" >>"$crew_folder/history"
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

# history WHAT KIND KIND KIND FAULT…
history() {
    local what=$1 kind
    set_clock +0
    for kind in "$2" "$3" "$4"; do make_member "$kind"; done
    shift 4
    crew_begin "${what// /-}"
    crew_until "${ROWLOCK_TEST_GRANTS:-100}" "$@"
    crew_end "$what"
    drop_members
}
first_clock() { postgres_shell "${dirs[0]}" "SELECT extract(epoch FROM clock_timestamp())::bigint"; }

CREW_VIEWS=${CREW_VIEWS:-200}
CREW_DEATHS=1
export CREW_VIEWS CREW_DEATHS
more=()
[ -z "${ROWLOCK_TEST_LONG:-}" ] || more=("kill_one 1" "freeze_one 0")
history "three databases" postgres mysql sqlite "kill_one 0" "freeze_one 1" "stick_one 2" "lose_two 0 1" \
    jump "${more[@]}"
[ -z "${ROWLOCK_TEST_LONG:-}" ] ||
    history "three PostgreSQL servers" postgres postgres postgres jump "freeze_one 1" "kill_one 2" \
        "lose_two 1 2" jump "kill_one 1" "freeze_one 0"
rm -rf "${clock%/clock}"
done_testing
