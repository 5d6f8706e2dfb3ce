# shellcheck shell=bash disable=SC2154
# What the histories of a quorum share: members, clients (crew.c) and faults; sourced by
# tests/quorum/*.t.
#
#     make_member KIND      a server, or a file of SQLite; the next member
#     crew_begin NAME       makes the members a quorum, and starts the clients
#     crew_until N FAULT…   has one of these faults after the other, each at least once, until there are
#                           N grants
#     crew_end WHAT         ends them, and passes or fails for each sentence of judge.c
#     rows_of M             the name and the token of each row of a member
#     drop_members          ends the members
#
# Faults are functions. They name members by their place, from 0:
#
#     kill_one M            kill -9, restarted, and joined again
#     freeze_one M          SIGSTOP for a moment
#     stick_one M           the same for a SQLite file: another writer has it
#     lose_two M N          both are frozen for longer than a lease
#
# CREW_PAUSE: seconds between two faults. CREW_KEEP: a folder in which the histories are kept.
#
. "$(dirname "${BASH_SOURCE[0]}")/../cli/cli.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../lib/server.sh"

crew=${ROWLOCK_TEST_BUILD:-build}/tests/quorum/crew
crew_folder=
crew_pid=
kinds=()
dirs=()
urls=()
# The longest lease of crew.c.
lease=1.5

drop_members() {
    local i
    for i in "${!dirs[@]}"; do
        [ "${kinds[i]}" = sqlite ] || server_crash "${dirs[i]}"
        rm -rf "${dirs[i]}"
    done
    kinds=() dirs=() urls=()
}
clean_up() {
    trap '' INT TERM HUP
    [ -z "$crew_folder" ] || touch "$crew_folder/stop"
    [ -z "$crew_pid" ] || wait "$crew_pid" 2>/dev/null
    drop_members
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

make_postgres() { postgres_make "$1" "$2" -c fsync=off; }
make_mysql() { mysql_make "$1" "$2" --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0; }

make_member() {
    local kind=$1 dir
    dir=$(new_server_dir q)
    kinds+=("$kind")
    dirs+=("$dir")
    case $kind in
        sqlite)
            urls+=("sqlite:$dir/member.db")
            return
            ;;
        mysql)
            start_somewhere "$kind" "$dir" make_mysql "$dir" PORT
            mysql_shell "$dir" -e 'CREATE DATABASE rowlock'
            urls+=("mysql://root@127.0.0.1:$(cat "$dir/port")/rowlock")
            ;;
        postgres)
            find_pgbin
            start_somewhere "$kind" "$dir" make_postgres "$dir" PORT
            urls+=("postgresql://postgres@127.0.0.1:$(cat "$dir/port")/postgres")
            ;;
    esac
}

crew_begin() {
    crew_folder=$work/$1
    mkdir -p "$crew_folder"
    CREW_URLS=${urls[*]}
    CREW_FENCE_URL=sqlite:$work/$1/fence.db
    export CREW_URLS CREW_FENCE_URL
    ok "$1: the members have tables" "$crew" install "${urls[@]}" "$CREW_FENCE_URL"
    ok "$1: they are a quorum" "$crew" vote
    "$crew" run "$crew_folder" >"$crew_folder/out" 2>&1 </dev/null 3>&- 4>&- &
    crew_pid=$!
}

# The clock of the history. %d of some awks ends at 2^31, after half an hour.
us() { awk '{ printf "%.0f", $1 * 1000000 }' /proc/uptime; }
mark() { "$crew" mark "$crew_folder" "$1"; }
grants() { "$crew" grants "$crew_folder"; }
# Time: faults last for a moment, of any length. The judge allows all.
a_while() { sleep "0.$((RANDOM % 9 + 1))"; }

start_again() {
    SERVER_DEATH_SIGNAL=QUIT server_start "${kinds[$1]}" "${dirs[$1]}" ||
        fail "member $1 does not start again"
}
join_again() { until_true 60 "$crew" join 2>>"$crew_folder/joins" || fail "$(tail -n 1 "$crew_folder/joins")"; }

kill_one() {
    server_crash "${dirs[$1]}"
    a_while
    start_again "$1"
    join_again
}
freeze_one() {
    server_freeze "${dirs[$1]}"
    a_while
    a_while
    server_thaw "${dirs[$1]}"
}
stick_one() { "$crew" stick "${urls[$1]}" $((RANDOM % 1500)); }
lose_two() {
    server_freeze "${dirs[$1]}"
    server_freeze "${dirs[$2]}"
    mark cut
    # Time: what was granted before the outage ends by the real clock. More changes nothing.
    sleep "$lease"
    a_while
    mark back
    server_thaw "${dirs[$1]}"
    a_while
    server_thaw "${dirs[$2]}"
}

rows_of() {
    local sql="SELECT name, token FROM rowlock_locks"
    case ${kinds[$1]} in
        postgres) postgres_shell "${dirs[$1]}" "$sql" ;;
        mysql) mysql_shell "${dirs[$1]}" rowlock -e "$sql" ;;
        sqlite) sqlite3 -cmd '.timeout 60000' "${dirs[$1]}/member.db" "$sql" ;;
    esac | tr '|\t' '  ' | sort
}

crew_until() {
    local wanted=$1 faults=0 have=0 fault
    shift
    while [ "$have" -lt "$wanted" ] || [ "$faults" -lt $# ]; do
        running "$crew_pid" || fail "the clients have ended: $(tail -n 3 "$crew_folder/out")"
        fault=$((faults % $# + 1))
        sleep "${CREW_PAUSE:-0.5}"
        ${!fault}
        faults=$((faults + 1))
        have=$(grants)
    done
    tap_note "$have grants, $faults faults, after $SECONDS s"
}

crew_end() {
    local status=0
    touch "$crew_folder/stop"
    wait "$crew_pid" || status=$?
    crew_pid=
    is "$1: the clients end" "$status" 0
    [ "$status" = 0 ] || tap_note "$(tail -n 5 "$crew_folder/out")"
    passes_on "$1" < <("$crew" judge "$crew_folder")
    [ -z "${CREW_KEEP:-}" ] || cp -r "$crew_folder" "$CREW_KEEP/"
}
