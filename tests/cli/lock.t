#!/usr/bin/env bash
# Locks in single steps, and what is printed: acquire, renew, release, verify, list, show, sweep, break,
# raise-tokens, install, check, names of every kind, JSON, full disks. On each database.
. "$(dirname "$0")/cli.sh"

installing() {
    errs "a database without tables is unfit, and the error says what to run" 78 "rowlock install" list
    prints "check reports missing tables and fails, as something BAD" 1 "BAD" check
    answers "check --json does so as JSON, with its worst verdict" 1 '$d->{worst}' "bad" check --json
    exits "install succeeds" 0 install
    answers "install is harmless when repeated, and says ok in JSON" 0 '$d->{result}' "ok" install --json
    prints "check is content then, finding by finding" 0 "ok " check
    answers "check --json is content, too, and has three words for its verdicts" 0 \
        'scalar grep { $_->{verdict} !~ /^(ok|warning|bad)$/ } @{$d->{findings}}' 0 check --json
    answers "an empty list is an empty array, in JSON" 0 'ref($d) . @$d' "ARRAY0" list --json
}

single_steps() {
    local token first
    exits "acquire gets a lock" 0 acquire steps --owner me --ttl 100 --note 'a note'
    token=$out first=$out
    holds "and prints nothing but its token" grep -Eqx '[1-9][0-9]*' <<<"$token"
    silent "verify finds the grant standing, and prints nothing" 0 verify steps --owner me --token "$token"
    silent "another is told at once with -n, and silently, for cron's sake" 75 acquire steps -n --owner other
    exits "-E changes that status" 3 acquire steps -n -E 3 --owner other
    errs "-v names the holder, with program, process, host and note" 75 "rowlock[" acquire steps -n -v --owner other
    has "with the note as well" "$err" "a note"
    exits "a wait that is too short ends with the same status" 75 acquire steps -w 0.2 --owner other
    answers "--json tells the holder, with the token in the way" 75 '$d->{result} . $d->{holder}{token}' "busy$token" acquire steps -n --json
    answers "renew makes the lease last as long as it was granted for, from now on, and no longer" 0 \
        '$d->{remaining_ms} > 50000 && $d->{remaining_ms} <= 100000' 1 renew steps --owner me --token "$token" --json
    exits "or as long as --ttl says" 0 renew steps --owner me --token "$token" --ttl 1h
    answers "which show tells, and counts the renewals" 0 '($d->{grants}[0]{remaining_ms} > 3000000) . "/$d->{grants}[0]{renewals}"' \
        1/2 show steps --json
    exits "a stranger renews nothing" 76 renew steps --owner other --token "$token"
    exits "nor does another token" 76 release steps --owner me --token $((token + 1))
    answers "which release says in JSON, too, as lost" 76 '$d->{result}' "lost" release steps --owner other --token "$token" --json
    exits "after all that the grant stands" 0 verify steps --owner me --token "$token"
    gets_above "the same owner gets its lock again, with a greater token" "$token" acquire steps --owner me
    token=$out
    errs "and the older grant is gone, which is said" 76 "the grant with token $first is gone" verify steps --owner me --token "$first"
    ROWLOCK_OWNER=me ROWLOCK_TOKEN=$token exits "owner and token may come from the environment" 0 release steps
    exits "a second release finds nothing" 76 release steps --owner me --token "$token"
}

made_up_owner() {
    answers "with --json an owner is made up, of 128 bits" 0 'length $d->{owner}' 32 acquire made-up --json
    holds "the times are whole numbers and UTC" test 1 = "$(json \
        '$d->{expires_us} =~ /^\d{16}$/ && $d->{expires_at} =~ /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z$/ ? 1 : 0')"
    exits "and the shown owner can release" 0 release made-up \
        --owner "$(json '$d->{owner}')" --token "$(json '$d->{token}')"
    ROWLOCK_OWNER="from the environment" exits "ROWLOCK_OWNER is acquire's owner" 0 acquire by-env
    answers "as show tells" 0 '$d->{grants}[0]{owner}' "from the environment" show by-env --json
}

expiry() {
    local token
    rl acquire short --owner me --ttl 100ms
    token=$out
    rl wait short
    answers "verify calls a lease that ran out lapsed, in JSON" 76 '$d->{result}' "lapsed" verify short --owner me --token "$token" --json
    has "and says that no other client got the lock" "$err" "no other client"
    counts "list shows since when it is expired" 0 1 '^short .*expired ' list
    errs "renew gets it back, with a warning" 0 "had run out" renew short --owner me --token "$token"
    rl acquire short --owner me --ttl 100ms
    rl wait short
    gets_above "an expired lock is taken over at once, with a greater token" "$token" acquire short -n --owner next
}

listing() {
    rl acquire list-b --owner me --note "$(printf 'wakeup\a, line\nbreak, \033[31mred')"
    rl acquire list-a --owner me
    exits "list succeeds" 0 list
    same "it begins with headings" "$(head -n 1 <<<"$out" | tr -s ' ' | sed 's/ $//')" \
        "NAME TOKEN KIND HELD BY SINCE LEASE LEFT NOTE"
    same "and goes on in the order of names" "$(grep -o '^list-[ab]' <<<"$out" | tr '\n' ' ')" "list-a list-b "
    has "what a terminal would obey is escaped" "$out" 'wakeup\x07, line\x0abreak, \x1b[31mred'
    rl acquire "list-u" --owner me --note $'a\xe2\x80\xa8b\xe2\x80\x8bc\xef\xbb\xbfd\xd8\x9ce\xe2\x80\x8d''f'
    prints "so is what separates lines or is not seen" 0 'a\xe2\x80\xa8b\xe2\x80\x8bc\xef\xbb\xbfd\xd8\x9ce'$'\xe2\x80\x8d''f' list
    prints "for show too" 0 'a\xe2\x80\xa8b\xe2\x80\x8bc\xef\xbb\xbfd\xd8\x9ce'$'\xe2\x80\x8d''f' show list-u
    rl release list-u --owner me --token 1
    exits "list --names prints only the names" 0 list --names
    same "in the same order" "$(grep '^list-' <<<"$out")" "list-a"$'\n'"list-b"
    answers "list --json is an array in the same order, of objects" 0 'join " ", grep { /^list-/ } map { $_->{name} } @$d' "list-a list-b" list --json
    same "with exact texts" "$(json '(grep { $_->{name} eq "list-b" } @$d)[0]{note}')" \
        "$(printf 'wakeup\a, line\nbreak, \033[31mred')"
    rl acquire "list of a name that is longer than any column has room for" --owner me
    rl list
    same "a long name does not move the columns" \
        "$(grep -o '^ *[^ ]* *[0-9]*  *exclusive' <<<"$(grep -A1 '^list' <<<"$out" | grep exclusive)" | awk '{ print length }' | sort -u | wc -l)" 1
    prints "show prints one lock, with its owner" 0 "owner        me" show list-a
    errs "show of what never was ends with 1, and says so" 1 "no such lock" show nothing-of-this-name
    answers "in JSON, too, with no grants" 1 '@{$d->{grants}} . "/" . ($d->{last_token} // "none")' "0/none" show nothing-of-this-name --json
    rl acquire once --owner me
    local token=$out
    rl release once --owner me --token "$token"
    prints "show of a lock that is free again succeeds, and knows the last token" 0 "token $token" show once
}

sweeping() {
    rl sweep
    rl acquire swept-1 --owner me --ttl 100ms
    rl acquire swept-2 --owner me --ttl 100ms
    rl wait swept-2
    prints "a dry run names what would go, one a line" 0 "would remove 'swept-1'" sweep --dry-run
    answers "and removes nothing, as JSON says" 0 '$d->{dry_run} ? $d->{locks} : "wet"' 2 sweep --dry-run --json
    prints "what expired lately can be spared, so nothing is removed" 0 "removed 0 expired locks" sweep --older-than 1h
    answers "a sweep removes what expired, and names it in JSON" 0 'join " ", map { $_->{name} } @{$d->{removed}}' "swept-1 swept-2" sweep --json
    silent "with -q it says nothing, at all" 0 sweep -q
    start sweep --every 200ms --json
    rl acquire swept-3 --owner me --ttl 100ms
    holds "--every sweeps again and again" until_true grep -q swept-3 "$work/bg.out"
    holds "each sweep is a JSON value of its own" until_true perl -MJSON::PP -e '
        my @all = JSON::PP->new->incr_parse(do { local (@ARGV, $/) = shift; <> }); exit(@all < 2)' \
        "$work/bg.out"
    killed "and a signal is its orderly end" TERM 0 "$pid"
}

breaking() {
    local token
    rl acquire broken --owner me
    token=$out
    exits "break leaves another token's grant alone" 1 break broken --if-token $((token + 1))
    prints "break takes a grant away, and says whose it was" 0 "took 'broken' from rowlock[" break broken --if-token "$token"
    errs "there is nothing left to break, which is said" 1 "it has no holder" break broken
    answers "in JSON, too, as none" 1 '$d->{result}' "none" break broken --json
    rl acquire broken --owner other
    answers "break --json tells the grant, with its owner" 0 '$d->{broken}{owner}' "other" break broken --json
}

# Tokens of all names are raised, so this changes what other tests see of theirs: none of them minds.
raising() {
    local before highest
    rl acquire raised --owner me
    before=$out
    gets_above "raise-tokens raises the tokens, and prints the highest" $((before + 999)) raise-tokens --by 1000
    highest=$out
    exits "a grant that stands can be released" 0 release raised --owner me --token "$before"
    gets_above "the next one is granted above that" "$highest" acquire raised --owner me
    answers "by a million if not told otherwise, in JSON" 0 "\$d->{result} eq 'ok' && \$d->{highest} >= $highest + 1000000" 1 \
        raise-tokens --json
    before=$("$command" check | grep -o 'installation .*')
    exits "with a new identity" 0 raise-tokens --new-identity
    holds "the installation has another one" test "$("$command" check | grep -o 'installation .*')" != "$before"
    rl break raised
}

names() {
    local name
    local hostile=("it's" 'say "x"' 'back\slash' '100%' '%s%n%d' "'; DROP TABLE rowlock_locks; --"
        $'new\nline' $'tab\tbell\a' ' ' ' leading and trailing ' '$(touch x) `id`' '*' '-n' '\x41' '{"a":1}'
        'snow ☃ and 🔒' 'lö' 'lo' 'Lock' 'lock' 'lock ' $'\xc2\x9b2J' '_' '__' '?1 $1 :name @x' "$(printf 'e\xcc\x81')" 'é')
    for name in "${hostile[@]}"; do
        rl acquire --json --owner "$name" --note "$name" -n -- "$name"
        [ "$status" = 0 ] || break
    done
    same "names of every kind are different names" "$name: $status" "${hostile[-1]}: 0"
    rl list --json
    same "JSON has nothing that a terminal obeys" "$(tr -d '\n -~' <<<"$out" | od -An -c)" ""
    same "and come back as they went in" \
        "$(json 'join "|", sort grep { $_ ne "" } map { $_->{name} eq $_->{owner} && $_->{name} eq $_->{note} ? $_->{name} : "" } @$d')" \
        "$(printf '%s\0' "${hostile[@]}" | LC_ALL=C sort -z | tr '\0' '|' | sed 's/|$//;$!b')"
    name=${hostile[5]}
    rl show --json -- "$name"
    exits "such a name can be released" 0 release --owner "$name" --token "$(json '$d->{grants}[0]{token}')" \
        -- "$name"
    name=$(printf 'ö%.0s' {1..127})x
    exits "a name of 255 bytes passes" 0 acquire "$name" --owner me
    answers "and is not cut" 0 '$d->{grants}[0]{name}' "$name" show "$name" --json
    errs "a name of 256 bytes is refused, with the reason" 64 "255 bytes" acquire "${name}x" --owner me
    exits "an owner of 256 bytes is refused" 64 acquire x --owner "${name}x"
    exits "an error shows a name's line break as text" 76 verify $'a\nb' --owner me --token 1
    same "in one line" "$(wc -l <"$work/err")" 1
}

# More rows than a table prints at once.
many() {
    local i sql
    sql=$(for i in $(seq 1 2500); do
        echo "INSERT INTO cli_$$_locks (name, slot, permits, owner, token, request, acquired, expires, ttl, lapsed, renewals, host, pid, program, note) VALUES ('many $i', 0, 0, 'o', $i, 1, 1, 2, 1000, 0, 0, 'h', 1, 'p', '');"
    done)
    printf 'BEGIN;\n%s\nCOMMIT;\n' "$sql" | sql_client >/dev/null
    counts "a long list has one heading" 0 1 '^NAME' list
    same "and a line for each lock" "$(grep -c '^many ' <<<"$out")" 2500
    answers "and in JSON an object" 0 'scalar grep { $_->{name} =~ /^many / } @$d' 2500 list --json
    rl sweep
}

# Its output goes where nothing reads any more, which MariaDB's client library hides from us.
unread() {
    mkfifo "$work/unread"
    # shellcheck disable=SC2094 # a pipe
    exec 7<>"$work/unread" 8>"$work/unread" 7<&-
    env --default-signal=PIPE "$command" "${@:2}" >&8 2>"$work/err"
    same "$1 without a reader ends as other programs do" "$?$(<"$work/err")" 141
    exec 8>&-
    rm "$work/unread"
}

output() {
    unread "list" list
    unread "once list" once list --json
    unread "acquire" acquire unprinted --owner me
    exits "a lock whose token nothing reads is not left behind" 0 acquire unprinted -n --owner other
    rl break unprinted
    full "list" list
    full "list --json" list --json
    full "show" show broken
    full "check" check
    full "--help" --help
    full "acquire" acquire unprinted --owner me
    exits "a lock whose token could not be printed is not left behind" 0 acquire unprinted -n --owner other
}

unreachable() {
    local url
    case $db in
        sqlite) return ;;
        postgres) url="postgresql://127.0.0.1:1/x?connect_timeout=3" ;;
        mysql) url=mysql://root@127.0.0.1:1/x ;;
    esac
    errs "a database that is not there is unreachable, which the error says" 69 "rowlock: " list --url "$url"
    errs "it names the lock that was asked for" 69 "rowlock: acquire 'nightly': open: " acquire -n nightly --owner me --url "$url"
    errs "and server" 69 127.0.0.1 show nightly --url "$url"
    [ "$db" = mysql ] || has "and why" "$err" "Connection refused"
    exits "a password does not show in the error" 69 list --url "${url/:\/\//:\/\/somebody:hush@}"
    same "not even in part" "$(grep -c hush <<<"$err")" 0
    exits "a user who may not log in is denied" 77 list --url "${ROWLOCK_URL/:\/\/*@/://no_such_user@}"
}

# What cannot be had from a healthy server.
unfit() {
    case $db in
        sqlite)
            printf '%5000s' 'no database' >"$work/garbage"
            exits "a file that is something else is refused" 64 list --url "sqlite:$work/garbage"
            same "and not touched" "$(cat "$work/garbage")" "$(printf '%5000s' 'no database')"
            ;;
        postgres)
            errs "a parameter in the URL that is not known is refused, and named" 64 "does not know: sslmod" \
                list --url "postgresql://a:b@127.0.0.1:1/x?connect_timeout=3&sslmod=require"
            exits "a server that takes no writes is unfit" 78 install --url "$(private_url \
                "$ROWLOCK_TEST_POSTGRES_URL" "readonly_&options=-c%20default_transaction_read_only%3Don")"
            exits "so is a schema that is not there" 78 list --url \
                "$(private_url "$ROWLOCK_TEST_POSTGRES_URL" "x_&rowlock_schema=not_there")"
            ;;
    esac
}

# A server that fails in an unforeseen way: a trigger of another program.
failing() {
    local prefix=cli_$$_
    [ "$db" = postgres ] || return
    sql_client <<SQL
CREATE FUNCTION ${prefix}no() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''not today''; END';
CREATE TRIGGER no BEFORE INSERT ON ${prefix}locks FOR EACH ROW EXECUTE FUNCTION ${prefix}no();
SQL
    errs "a failure of the server's own is 70, with the server's own words" 70 "not today" acquire x --owner me
    sql_client <<<"DROP TRIGGER no ON ${prefix}locks; DROP FUNCTION ${prefix}no"
}

for_each_database installing single_steps made_up_owner expiry listing sweeping breaking raising names many output \
    unreachable unfit failing
done_testing
