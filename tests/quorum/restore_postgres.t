#!/usr/bin/env bash
# A member of a quorum loses its last second: its folder is copied, a lock is granted, the server is
# killed, and the copy put back. With another member away the quorum has one that knows of the
# grant, and one that forgot. By its mark that one may not vote. With the marks changed by hand it
# does, and the judge of histories sees it.
. "$(dirname "$0")/crew.sh"

make_member postgres
make_member sqlite
make_member sqlite
crew_folder=$work/restored
mkdir -p "$crew_folder"
CREW_URLS=${urls[*]}
CREW_FENCE_URL=sqlite:$work/fence.db
ROWLOCK_URL=${urls[*]}
export CREW_URLS CREW_FENCE_URL ROWLOCK_URL
ok "the members have tables" "$crew" install "${urls[@]}" "$CREW_FENCE_URL"
ok "they are a quorum" "$crew" join

# claims OWNER: a grant with a long lease, written down. status: 0, if there was one.
claims() {
    local asked answered
    asked=$(us)
    rl acquire -n --owner "$1" --ttl 10m forgotten
    [ "$status" = 0 ] || return
    answered=$(us)
    # Time: the last member has answered by then, mostly. A grant that it lacks is judged as well.
    sleep 0.05
    printf 'G forgotten %s %s %s %s\n' "$out" "$asked" "$answered" $((answered + 600000000)) >>"$crew_folder/history"
    ends="${ends}E forgotten $out $((answered + 500000000))"$'\n'
}
ends=

# A SQLite file that is elsewhere is a member that is away.
away() { mv "${dirs[$1]}/member.db" "${dirs[$1]}/away.db"; }
back() { mv "${dirs[$1]}/away.db" "${dirs[$1]}/member.db"; }

restore() {
    server_crash "${dirs[0]}"
    rm -rf "${dirs[0]}/data"
    cp -a "${dirs[0]}/copy" "${dirs[0]}/data"
    rm -f "${dirs[0]}/data/postmaster.pid"
    start_again 0
}

rl acquire -n --owner before --ttl 10m forgotten
rl release --owner before --token "$out" forgotten
is "a lock has been granted before" "$status" 0
postgres_stop "${dirs[0]}"
cp -a "${dirs[0]}/data" "${dirs[0]}/copy"
start_again 0
ok "the restarted member joins" "$crew" join
# The copy is one of a member that may vote.
postgres_stop "${dirs[0]}"
rm -rf "${dirs[0]}/copy"
cp -a "${dirs[0]}/data" "${dirs[0]}/copy"
start_again 0
ok "and once more, after the copy" "$crew" join

away 2
claims first
is "with member 3 away, the others grant a lock" "$status" 0
first=$out
restore
back 2
away 1
claims second
tap_result $((status == 0)) "member 1 forgot the grant, and does not vote: nothing is granted"
has "and says why" "$err" "quorum-join"
"$crew" judge "$crew_folder" >"$work/verdict"
ok "so no rule is broken" grep -qx "ok - no token is granted twice" "$work/verdict"

mark=$("$crew" ask "${urls[2]}" "SELECT mark FROM rowlock_members WHERE member = 1")
postgres_shell "${dirs[0]}" "UPDATE rowlock_members SET mark = '$mark', started =
    (1000 * date_part('epoch', pg_postmaster_start_time()))::bigint WHERE member = 1"
claims second
is "with the marks changed by hand it votes, although it forgot" "$status" 0
printf '%s' "$ends" >>"$crew_folder/history"
"$crew" judge "$crew_folder" >"$work/verdict"
ok "there are two holders, and the judge sees it" grep -qx "not ok - no two holders while leases hold" "$work/verdict"
ok "the second has no higher token than the first ($first, $out), and the judge sees it" \
    grep -qx "not ok - a grant asked for after another was returned has a higher token" "$work/verdict"
done_testing
