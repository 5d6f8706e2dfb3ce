#!/usr/bin/env bash
# One lock over several databases: `rowlock --url URL --url URL --url URL`. First over three files,
# then over a PostgreSQL, a MySQL and a file, whose servers are stopped and frozen.
. "$(dirname "$0")/cli.sh"
own_servers

files() {
    local n
    for n in "$@"; do printf 'sqlite:%s/%s.db ' "$work" "$n"; done
}

# member N COMMAND…: on the member alone.
member() { ROWLOCK_URL=$(cut -d ' ' -f "$1" <<<"$ROWLOCK_URL") "${@:2}"; }

# member_has N NAME: does the member have the grant of $token? A grant needs a majority only. A renewal gives it to the
# others.
member_has() {
    rl renew "$2" --owner me --token "$token" --ttl 1h
    member "$1" json_is '"$d->{grants}[0]{token} $d->{grants}[0]{owner}"' "$token me" show "$2"
}
all_have() { member_has 1 "$1" && member_has 2 "$1" && member_has 3 "$1"; }

counts_of_urls() {
    local a=sqlite:$work/1.db b=sqlite:$work/2.db c=sqlite:$work/3.db
    export ROWLOCK_URL
    refused "two URLs" "--url: 2 URLs; give 1, or 3 or 5" --url "$a" --url "$b" list
    refused "four" "4 URLs" --url "$a" --url "$b" --url "$c" --url sqlite:4.db list
    refused "seven" "7 URLs" --url "$a" --url "$b" --url "$c" --url 4 --url 5 --url 6 --url 7 list
    refused "an empty one of three" "--url is empty" --url "$a" --url "" --url "$c" list
    ROWLOCK_URL=$(files 1 2) refused "two in ROWLOCK_URL" "ROWLOCK_URL: 2 URLs" list
    ROWLOCK_URL=$' \n' refused "white space alone" "ROWLOCK_URL is empty" list
    errs "the same URL twice is refused" 64 "members 1 and 3 of the quorum have the same URL" \
        --url "$a" --url "$b" --url "$a" list
    errs "three databases without tables are named, with what to do" 78 "rowlock install" \
        --url "$a" --url "$b" --url "$c" list
    gives "options before and after the command go together, and install goes from member to member" 0 \
        "$(printf 'member %d: The tables are in place.\n' 1 2 3)" --url "$a" install --url "$b" --url "$c"
    errs "a lock needs one thing more" 78 "quorum-join" --url "$a" --url "$b" --url "$c" run x true
    gives "quorum-join makes them a quorum, and says so" 0 "The 3 members vote." quorum-join --url "$a" --url "$b" --url "$c"
    answers "again it has nothing to do, which is fine" 0 '$d->{result}' ok quorum-join --url "$a" --url "$b" --url "$c" --json
    refused "quorum-join of one" "each of the 3 or 5 members" quorum-join --url "$a"
    errs "another order of the URLs is refused" 78 "same order" --url "$b" --url "$a" --url "$c" run x true
    gives "so do they for a lock, which has a token" 0 1 --url "$a" --url "$b" run x --url "$c" -- sh -c 'echo $ROWLOCK_TOKEN'
    ROWLOCK_URL=$a$'\n\t'$b$'\n'"$c " exits "any white space separates the URLs of ROWLOCK_URL" 0 \
        run x -- sh -c 'echo $ROWLOCK_TOKEN'
    is "which are the same three" "$out" 2
    ROWLOCK_URL="sqlite:nowhere" exits "--url wins over ROWLOCK_URL" 0 --url "$a" --url "$b" --url "$c" list
    ROWLOCK_URL=$(files 1 2) exits "help needs no URL" 0 help run
    mkdir "$work/a folder"
    ROWLOCK_URL="sqlite:$work/a folder/1.db" exits "a path with a space is one URL" 0 install
    ok "and that file" test -s "$work/a folder/1.db"
    ROWLOCK_URL="$(files a b c d e)" exits "five work, too" 0 install
    ROWLOCK_URL="$(files a b c d e)" exits "as a quorum" 0 quorum-join
    ROWLOCK_URL="$(files a b c d e)" exits "for a lock" 0 run five true
}

# Each waits for its turn in each member, so they must ask the members in the same order.
joins_in_two_orders() {
    local a=sqlite:$work/o1.db b=sqlite:$work/o2.db c=sqlite:$work/o3.db first last
    rl install --url "$a" --url "$b" --url "$c"
    timeout 60 "$command" quorum-join --url "$a" --url "$b" --url "$c" >/dev/null 2>&1 &
    first=$!
    timeout 60 "$command" quorum-join --url "$c" --url "$b" --url "$a" >/dev/null 2>&1
    last=$?
    wait "$first"
    is "of two joins with the URLs in two orders one joins, and one is refused" \
        "$(printf '%s\n' "$?" "$last" | sort -n | xargs)" "0 78"
}

each_member() {
    local token
    ROWLOCK_URL=$(files 1 2 3)
    is "no exit handler takes memory from a thread" "$(LD_DEBUG=files "$command" list 2>&1 | grep -c 'calling fini')" 0
    counts "check looks at each member, and says at which" 0 3 '^member [123]:$' check
    is "and whether it votes" "$(sed '1,/^quorum:$/d' <<<"$out" | grep -c '^ok *member [123]  *votes$')" 3
    is "and what it is in the quorum" "$(grep -c '^ok *quorum *member [123] of 3 of ' <<<"$out")" 3
    sqlite3 "$work/2.db" "UPDATE rowlock_members SET mark = mark || 'old' WHERE self"
    exits "a member that was restored is found by the others" 1 check
    is "which is told, with what to do" "$(grep -A 1 '^BAD  *member 2 ' <<<"$out" | tr -s ' ')" \
        "BAD member 2 it was restored, and may have lost grants: run \`rowlock quorum-join\`"$'\n'" it does not vote until then"
    exits "--json has it" 1 check --json
    is "in an object of its own" "$(tail -n +1 <<<"$out" | perl -MJSON::PP -e '
        my @d = JSON::PP->new->incr_parse(join "", <>); my %f = map { $_->{item}, $_->{verdict} } @{$d[3]{findings}};
        print scalar @d, " $d[3]{worst}", map " $_ $f{$_}", sort keys %f')" "4 bad member 1 ok member 2 bad member 3 ok"
    sqlite3 "$work/2.db" "UPDATE rowlock_members SET mark = replace(mark, 'old', '') WHERE self"
    exits "with its mark it votes" 0 check
    mv "$work/2.db" "$work/2.away"
    exits "check finds a member without tables" 1 check
    is "and still says that the others vote" "$(sed '1,/^quorum:$/d' <<<"$out" | grep -c '^ok *member [13]  *votes$')" 2
    mv "$work/2.away" "$work/2.db"
    counts "install --json prints an object for each member, with its number" 0 3 '"member": [123],' install --json
    counts "sweep goes to each member, with a line for each" 0 3 '^member [123]: removed 0' sweep
    counts "and with JSON an object for each" 0 3 '^{"member": [123], "removed": \[\], "result": "ok"' sweep --json
    counts "upgrade has a line for each" 0 3 '^member [123]: There is nothing to do' upgrade
    exits "a lock to break" 0 acquire broken --owner me
    token=$out
    until_true all_have broken
    refused "break without a token" "give --if-token" break broken
    counts "break with it takes the grant from all members, and tells each" 0 3 '"member": [123]' break broken --if-token "$token" --json
    exits "so it is gone" 76 verify broken --owner me --token "$token"
    errs "breaking what is not there finds nothing, and says of which member" 1 \
        "rowlock: member 3: break 'broken': it has no holder with token $token" break broken --if-token "$token"
    refused "install --print" "each member has its own SQL" install --print
    refused "upgrade --sql" "each member has its own SQL" upgrade --sql
    refused "sweep --every" "start one sweep for the --url of each member" sweep --every 1
    refused "raise-tokens" "give the --url of one member" raise-tokens
    refused "once" "give the --url of one member" once list
    refused "a shared lock" "exclusive locks only" run -s x true
    refused "a counted lock" "exclusive locks only" acquire --permits 2 x --owner o
    refused "several locks at once" "one lock at a time" run x y -- true
    refused "run --once" "--once and --every need one URL" run --once k x true
    mv "$work/2.db" "$work/2.away"
    errs "a member that fails does not keep the next ones from their turn" 78 "member 2: sweep" sweep
    is "they are done" "$(cut -d : -f 1 <<<"$out")" $'member 1\nmember 3'
    rm -f "$work"/2.db*
    mv "$work/2.away" "$work/2.db"
}

twins() {
    ROWLOCK_URL="sqlite:$work/t1.db sqlite:$work/./t1.db sqlite:$work/t3.db"
    rl install
    errs "one database by two names is no two members" 78 "members 1 and 2 are the same database" quorum-join
    cp "$work/t1.db" "$work/t2.db"
    ROWLOCK_URL="sqlite:$work/t3.db sqlite:$work/t1.db sqlite:$work/t2.db"
    errs "nor are a database and its copy" 78 "members 2 and 3 are the same database, or copies" quorum-join
    ROWLOCK_URL=$(files 1 2 a)
    errs "a member of another quorum is refused" 78 "same order" quorum-join
}

identity() { sqlite3 "$work/$1.db" "SELECT substr(identity, 1, 16) FROM rowlock_meta"; }
replaced_member() {
    local token was
    ROWLOCK_URL=$(files r1 r2 r3)
    rl install && rl quorum-join && rl run x true
    rl acquire x --owner me
    token=$out
    until_true all_have x
    was=$(identity r2)
    rm -f "$work"/r2.db*
    exits "without one file the others go on" 0 verify x --owner me --token "$token"
    member 2 rl install
    exits "an empty database in its place does not vote" 0 release x --owner me --token "$token"
    rm -f "$work"/r1.db.away
    mv "$work/r1.db" "$work/r1.db.away"
    errs "which is told when it is needed" 78 "member 2: it is of no quorum yet" run -n x true
    errs "and needs the others to join" 78 "join the quorum: member 1: there is no such file" quorum-join
    mv "$work/r1.db.away" "$work/r1.db"
    errs "it is not the database that has joined there" 78 "is not the one that joined as member 2" quorum-join
    has "which the error names" "$err" "its installation is $(identity r2), not $was"
    errs "the word must be about that member" 78 "quorum-join --replace 2" quorum-join --replace 3
    exits "there must be such a member" 64 quorum-join --replace 4
    prints "check says what to do" 1 "it is not the database that joined" check
    exits "nothing has changed: it works alone" 0 run --url "sqlite:$work/r2.db" x true
    errs "quorum-join --replace takes it in" 0 "installation $(identity r2) takes the place of $was as member 2" \
        quorum-join --replace 2 --statement-timeout 5s
    exits "and then it is the member" 0 quorum-join
    mv "$work/r3.db" "$work/r3.db.away"
    gets_above "then it votes, with a higher token" "$token" run -n x -- sh -c 'echo "$ROWLOCK_TOKEN"'
    mv "$work/r3.db.away" "$work/r3.db"
}

# The last command said that it waits for so many seconds, or less.
waits_for_calls() { [ "$(sed -n 's/.*waiting \([0-9]*\) s for calls to end.*/\1/p' <<<"$err")" -le "$1" ] 2>/dev/null; }

# A backup that has the newest mark: docs/QUORUM.md says what to do.
restored_file() {
    local token
    needs sqlite3 "a restored file" || return
    ROWLOCK_URL=$(files s1 s2 s3)
    rl install && rl quorum-join
    cp "$work/s2.db" "$work/s2.backup"
    mv "$work/s1.db" "$work/s1.away"
    rl run x true && rl run x -- sh -c 'echo "$ROWLOCK_TOKEN"'
    token=$out
    mv "$work/s1.away" "$work/s1.db"
    rm -f "$work"/s2.db*
    sqlite3 "$work/s2.backup" 'DELETE FROM rowlock_members'
    mv "$work/s2.backup" "$work/s2.db"
    exits "a restored file whose mark was removed joins" 0 quorum-join --statement-timeout 5s
    holds "when calls of so long are over, and no later" waits_for_calls 6
    mv "$work/s3.db" "$work/s3.away"
    gets_above "and votes for a token above those that it has forgotten" "$token" run -n x -- sh -c 'echo "$ROWLOCK_TOKEN"'
    mv "$work/s3.away" "$work/s3.db"
}

marks() {
    local n
    for n in 1 2 3; do sqlite3 "$work/j$n.db" "SELECT member, self, mark FROM rowlock_members ORDER BY member"; done
}
waits() { grep -q "waiting .* for leases to end" "$work/first"; }

# Like a program that was just paused: it waits for leases, in the queue of each member.
begin_join() {
    sqlite3 "$work/j1.db" "DELETE FROM rowlock_members"
    rl acquire held --ttl 20s --owner holder
    "$command" quorum-join --statement-timeout 5s >"$work/first" 2>&1 </dev/null &
    first=$!
    holds "a join has its turn, and waits for a lease to end" until_true waits
}

# A join is stopped for longer than its tickets last, and another one goes on. The first one must not write what it was
# about to write: the members would not vote then.
stalled_join() {
    local first before n
    [ -n "${ROWLOCK_TEST_LONG:-}" ] || return
    ROWLOCK_URL=$(files j1 j2 j3)
    rl install
    exits "three files are a quorum" 0 quorum-join
    begin_join
    kill -STOP "$first"
    exits "it is stopped, and another one joins" 0 quorum-join --statement-timeout 5s
    before=$(marks)
    exits "all members vote then" 0 check
    kill -CONT "$first"
    ends "the first one goes on, and ends well" 0 "$first"
    same "it has written no marks" "$(marks)" "$before"
    exits "all members vote" 0 check
    for n in 1 2 3; do same "it has left no ticket" "$(sqlite3 "$work/j$n.db" "SELECT count(*) FROM rowlock_waiters")" 0; done
    begin_join
    kill -KILL "$first"
    finished "$first"
    exits "it is killed, and another one joins" 0 quorum-join --statement-timeout 5s
    exits "all members vote once more" 0 check
}

in_steps() {
    local token n none=
    exits "acquire prints the token" 0 acquire doc --owner me --note 'over three'
    token=$out
    for n in 1 2 3; do
        ok "member $n gets the grant" until_true member_has $n doc
    done
    silent "a rival is refused silently" 75 run -n doc true
    errs "which -v explains by its holder" 75 "over three" run -n -v doc true
    exits "a wait ends without it" 75 run -w 0.3 doc true
    exits "verify finds the grant" 0 verify doc --owner me --token "$token"
    answers "renew extends it" 0 '$d->{remaining_ms} > 50000 && $d->{remaining_ms} <= 60000' 1 \
        renew doc --owner me --token "$token" --ttl 60s --json
    answers "list shows it, once" 0 'join " ", map { "$_->{name} $_->{token}" } @$d' "doc $token" list --json
    prints "show too, with its note" 0 "over three" show doc
    answers "watch shows it once as well" 0 'scalar @{$d->{grants}}' 1 watch --count 1 --json
    exits "wait waits for it" 75 wait -n doc
    exits "another's token is not released" 76 release doc --owner me --token $((token + 1))
    exits "its token is" 0 release doc --owner me --token "$token"
    for n in 1 2 3; do
        member $n json_is '@{$d->{grants}} + 0' 0 show doc && none+=$n
    done
    ok "a majority of the members has no grant any more" test ${#none} -ge 2
    exits "it is gone for verify" 76 verify doc --owner me --token "$token"
    # It asks the first member that answers, which may have the row until its lease is over.
    exits "and wait finds it free" 0 wait -w 120 doc
    answers "the next token is higher" 0 "\$d->{token} > $token" 1 acquire doc --owner me --json
    exits "release takes it back" 0 release doc --owner me --token "$(json '$d->{token}')"
}

hostile=(-- --url $'two\nlines' "'; DROP TABLE rowlock_locks; --" '%s%n' ' ' 'ärger 漢字' $'\e[31m' '*')
names() {
    local name
    for name in "${hostile[@]}" "$(printf 'x%.0s' {1..255})"; do
        exits "a name is taken literally: ${name@Q}" 0 run -n -- "$name" -- sh -c 'printf "%s" "$ROWLOCK_NAME" >"$0"' "$work/name"
        is "and is told to the job: ${name@Q}" "$(<"$work/name")" "$name"
    done
}

# The job tells its token and stays until it is told to go.
stay='echo "$ROWLOCK_TOKEN" >"$0"; while [ ! -e "$0.go" ]; do sleep 0.05; done; exit 7'

jobs() {
    rm -f "$work"/job*
    begun "$work/job" run -v work -- sh -c "$stay" "$work/job"
    exits "while a job runs, a rival gets nothing" 75 run -n work -- true
    env "$command" run work -- sh -c 'echo "$ROWLOCK_TOKEN"' >"$work/next" 2>&1 </dev/null &
    next=$!
    holds "a rival can wait in the queue" until_true sh -c "'$command' list --waiters | grep -q work"
    touch "$work/job.go"
    ends "the job ends with its own status" 7 "$pid"
    ends "the rival is next" 0 "$next"
    holds "with a higher token" test "$(<"$work/next")" -gt "$(<"$work/job")"
    exits "a job may hold another lock inside" 0 run outer -- "$command" run inner -- true
    exits "but does not wait for its own" 64 run outer -- "$command" run outer -- true
    case $ROWLOCK_URL in
        sqlite:*) exits "also if the first member lacks its row" 64 run outer -- sh -c \
            'sqlite3 -cmd ".timeout 60000" "$1" "DELETE FROM rowlock_locks" && exec "$0" run -w 20 outer -- true' "$command" "$work/1.db" ;;
    esac
}

over_files() {
    ROWLOCK_URL=$(files 1 2 3)
    in_steps
    names
    jobs
}

on() { db=$1 server "$2"; }

no_majority() {
    local url=${ROWLOCK_TEST_MYSQL_URL} pg=${ROWLOCK_TEST_POSTGRES_URL}
    export ROWLOCK_URL
    pg=$(private_url "$pg" "nothing_$$_") url=$(private_url "$url" "nothing_$$_")
    errs "one member without tables costs nothing" 0 "" --url "$pg" --url "$mysql" --url "$file" run -n x true
    errs "of two the texts say what is missing, and where" 78 "2 of the 3 members of the quorum cannot be used: member 1: " \
        --url "$pg" --url "$url" --url "$file" run -n x true
    has "of each of them" "$err" "; member 2: "
    has "and what to do" "$err" 'run `rowlock install` for it'
    pg=${postgres/postgres@/stranger@} url=${mysql/root@/stranger@}
    errs "one member that denies access costs nothing" 0 "" --url "$postgres" --url "$url" --url "$file" run -n x true
    errs "two that do are told" 77 "2 of the 3 members of the quorum cannot be used: member 1: " \
        --url "$pg" --url "$url" --url "$file" run -n x true
    has "with the reason of each" "$err" "; member 2: Access denied"
    has "which does not show the URL" "${err//$url/}" "stranger"
}

one_away() {
    on mysql stop
    exits "with one of three stopped there are grants" 0 run -n x -- sh -c 'exit 0'
    exits "and steps: acquire" 0 acquire step --owner me --ttl 60s
    token=$out
    exits "verify" 0 verify step --owner me --token "$token"
    exits "renew" 0 renew step --owner me --token "$token"
    answers "list shows the grant" 0 '(grep { $_->{name} eq "step" } @$d)[0]{token}' "$token" list --json
    exits "a rival gets nothing" 75 run -n step true
    exits "release" 0 release step --owner me --token "$token"
    start run -v x -- sh -c 'for i in $(seq 400); do grep -q "$1" "$0" && exit; sleep 0.05; done; exit 1' \
        "$work/bg.err" "member 2 of the quorum cannot be reached: Can't connect"
    ends "-v tells of the member" 0 "$pid"
    errs "check and install say which member is away" 69 "rowlock: member 2: open" check
    has "and look at the others" "$out" "member 3:"
}

two_away() {
    on postgres freeze
    errs "with two of three away nothing is granted" 69 "2 of the 3 members of the quorum cannot be reached" run -n x true
    has "which names the one that does not answer" "$err" "member 1: "
    has "and the one that is not there" "$err" "member 2: Can't connect"
    begun "$work/bg.err" run x true
    has "a wait says that it waits for the members" "$(<"$work/bg.err")" \
        "a majority of the members is away; still waiting"
    on postgres thaw
    ends "it ends when a majority is back, and says so" 0 "$pid" "a majority of the members is back"
}

# A job writes down the time again and again. Its members go away one after the other.
tick='while :; do date +%s%6N >>"$0"; sleep 0.02; done'
member_renewed() { member "$1" renewed ending "$2"; }
expires() {
    member 3 rl show ending --json
    json '$d->{grants}[0]{expires_us}'
}
members_go() {
    local before
    begun "$work/tick" run --ttl 15s --grace 300ms ending -- sh -c "$tick" "$work/tick"
    on mysql freeze
    member_renewed 1 0
    before=$(json '$d->{grants}[0]{renewals} // 0')
    ok "a job goes on when one member has gone" until_true member_renewed 1 "$((before + 1))"
    # The reason is what a warning said last, if the member was given up by then.
    ok "which it says" until_true grep -q "renew lock 'ending': " "$work/bg.err"
    on postgres freeze
    ends "it is ended when the second one has gone, with the reason" 76 "$pid" "could not be renewed in time"
    ok "before the lease ended" ended_by "$work/tick" "$(expires)"
    on mysql thaw
    on postgres thaw
}

# A restarted server may have lost what it had promised.
restarted() {
    on mysql start
    exits "a restarted member does not vote, and the others go on" 0 run -n x true
    prints "check says so" 1 "it does not vote" check
    on postgres stop
    errs "when another one is away there is no majority" 69 "member 2: it was restarted or restored" run -n x true
    has "which says what to do" "$err" "quorum-join"
    errs "quorum-join needs the other members" 69 "member 1 is away, and is needed for this" quorum-join
    on postgres start
    gives "then it lets them vote again, and says so" 0 "The 3 members vote." quorum-join
    gets_above "tokens go on above those from before" "$token" run x -- sh -c 'echo "$ROWLOCK_TOKEN"'
}

over_servers() {
    postgres=$(private_url "$ROWLOCK_TEST_POSTGRES_URL" "quorum_$$_")
    mysql=$(private_url "$ROWLOCK_TEST_MYSQL_URL" "quorum_$$_")
    file=sqlite:$work/mixed.db
    ROWLOCK_URL="$postgres $mysql $file"
    exits "three kinds of databases" 0 install
    exits "make a quorum" 0 quorum-join
    in_steps
    names
    jobs
    no_majority
    members_go
    one_away
    two_away
    restarted
}

if [ -n "${ROWLOCK_TEST_SQLITE_URL:-}" ]; then
    counts_of_urls
    joins_in_two_orders
    each_member
    twins
    replaced_member
    restored_file
    stalled_join
    over_files
    if [ -n "${ROWLOCK_TEST_POSTGRES_DIR:-}" ] && [ -n "${ROWLOCK_TEST_MYSQL_DIR:-}" ]; then
        over_servers
    elif [[ ${ROWLOCK_TEST_BACKENDS:-postgres mysql} == *postgres*mysql* ]]; then
        skip "over a PostgreSQL, a MySQL and a file" "it needs a private server of each"
    fi
elif [ "${SKIPS_AS_FAILS:-0}" = 1 ]; then
    tap_result 1 "there is an embedded database to test with"
fi
done_testing
