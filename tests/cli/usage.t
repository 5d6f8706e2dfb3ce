#!/usr/bin/env bash
# The command line: help, what is refused and how, durations, the embedded default. And what people get wrong: empty
# variables, mistyped paths, passwords in URLs, keys pressed at odd times. No server is used.
. "$(dirname "$0")/cli.sh"

commands="run acquire renew release verify wait list show watch metrics sweep break raise-tokens install upgrade check quorum-join help"

help() {
    local name
    exits "--help explains the whole" 0 --help
    for name in $commands; do has "the help names the command $name" "$out" "  $name "; done
    has "the help names the exit statuses" "$out" "75  not acquired"
    for name in $commands; do
        prints "$name --help exits with 0, $name --help shows its usage" 0 "Usage: rowlock $name" "$name" --help
        exits "help $name does the same" 0 help "$name"
    done
    exits "help alone explains the whole" 0 help
    exits "--version prints the version" 0 --version
    has "which is that of the header" "$out" "rowlock $(awk '
        $2 ~ /^ROWLOCK_VERSION_(MAJOR|MINOR|PATCH)$/ { v = v sep $3; sep = "." } END { print v }' \
        include/rowlock/rowlock.h)"
    for name in ${ROWLOCK_TEST_BACKENDS:-sqlite postgres mysql}; do
        ok "and the client library of $name" grep -qE "^$name +[A-Za-z/ ]+ [0-9]+\\.[0-9]+" <<<"$out"
    done
    is "one line for each" "$(wc -l <<<"$out")" $((1 + $(wc -w <<<"${ROWLOCK_TEST_BACKENDS:-sqlite postgres mysql}")))
    exits "--help works beside arguments that are wrong otherwise" 0 run --help
    is "help goes to standard output only" "$err" ""
}

# on_terminal WORD…: runs `help WORD…` on a terminal; sets $out.
on_terminal() {
    out=$(PATH=$work/bin:$PATH SHELL=/bin/sh timeout 60 script -qec "$command help $*" /dev/null </dev/null)
}

manual() {
    mkdir -p "$work/bin"
    # It has the page of run only.
    cat >"$work/bin/man" <<'END'
#!/bin/sh
case "$*" in
    "-w 1 rowlock-run" | "-w 1 rowlock") echo "/usr/share/man/man1/$3.1" ;;
    "-w "*) echo "No manual entry" >&2 && exit 16 ;;
    *) echo "man was asked for $*" ;;
esac
END
    chmod +x "$work/bin/man"
    on_terminal run
    has "on a terminal, help opens the page of the command with man" "$out" "man was asked for 1 rowlock-run"
    on_terminal
    has "or that of the whole" "$out" "man was asked for 1 rowlock"
    on_terminal list
    has "without the page it prints the text of --help" "$out" "Usage: rowlock list"
    printf '#!/bin/sh\necho "No manual here"\n' >"$work/bin/man"
    on_terminal run
    has "also if man has no pages at all" "$out" "Usage: rowlock run"
    PATH=$work/bin:$PATH prints "without a terminal it prints that text too" 0 "Usage: rowlock run" help run
}

refusals() {
    refused "no command" "which command"
    refused "an unknown command" "unknown command 'frobnicate'" frobnicate
    refused "an unknown command to help" "unknown command 'x'" help x
    refused "an unknown long option" "no such option here" list --colour
    refused "an unknown option before the command" "'--json'" --json list
    refused "an unknown short option" "unknown option '-x'" list -x
    refused "another command's option" "unknown option '-E'" list -E 3
    refused "an option without its argument" "--ttl needs an argument: DURATION" acquire x --ttl
    refused "a short option without its argument" "--wait needs an argument" acquire x -w
    refused "an argument to an option that takes none" "--json takes no argument" list --json=yes
    refused "a missing name" "too few arguments" acquire
    refused "a missing command to run" "too few arguments" run x
    refused "a second name" "unexpected argument 'y'" release x y
    refused "-n together with -w" "exclude each other" run -n -w 3 x true
    refused "an exit code of 256" "number from 0 to 255" run -E 256 x true
    refused "an exit code that is no number" "number from 0 to 255" run -E x x true
    refused "a token of 0" "not a token" release x --owner o --token 0
    refused "a token beyond 64 bits" "not a token" release x --owner o --token 9223372036854775808
    refused "a negative token" "not a token" release x --owner o --token -5
    refused "a batch of 0" "number from 1 to 10000" sweep --batch 0
    refused "a lease of 0" "must be more than 0" acquire x --owner o --ttl 0
    refused "a lease below 100ms" "from 100ms to 366d" acquire x --owner o --ttl 99ms
    refused "a lease beyond 366 days" "from 100ms to 366d" acquire x --owner o --ttl 367d
    refused "a grace of half the lease" "less than half of --ttl" run --ttl 4s --grace 2s x true
    refused "a longest hold below the shortest" "--max-hold" run --min-hold 5 --max-hold 4 x true
    refused "a stall of 0" "must be more than 0" run --stall 0 x true
    refused "raising tokens by 0" "number from 1 to 1000000000000000" raise-tokens --by 0
    refused "raising tokens by too much" "number from 1" raise-tokens --by 1000000000000001
    refused "--every 0" "must be more than 0" sweep --every 0
    refused "-q together with --json" "exclude each other" sweep -q --json
    refused "--print together with --json" "exclude each other" install --print --json
    refused "--names together with --json" "exclude each other" list --names --json
    refused "--sql together with --json" "exclude each other" upgrade --sql --json
    refused "acquire without an owner" "say --owner or set ROWLOCK_OWNER" acquire x
    refused "release without an owner" "say --owner" release x --token 1
    refused "release without a token" "say --token" release x --owner o
    ROWLOCK_TOKEN=seven refused "a ROWLOCK_TOKEN that is none" "'seven' is not a token" release x --owner o
    refused "-s together with --permits" "exclude each other" run -s --permits 2 x true
    refused "0 permits" "number from 1 to 1000000" run --permits 0 x true
    refused "-5 permits" "number from 1 to 1000000" run --permits -5 x true
    refused "permits that are no number" "number from 1 to 1000000" acquire x --owner o --permits abc
    refused "a million and one permits" "number from 1 to 1000000" run --permits 1000001 x true
    refused "-s for a command that takes no lock" "unknown option '-s'" wait -s x
    refused "several names without a command" "too few arguments" run x y --
    refused "a name with a line break among several" "line break" run x $'y\nz' -- true
    refused "an option of the command's before --" "the first -- has to stand before that" \
        run x sh -c true -- y
    for words in "list URL" "URL list" "sweep --batch URL" "list --URL"; do
        # shellcheck disable=SC2086 # words
        refused "a URL in the wrong place ($words)" "a URL stands after --url" ${words/URL/postgresql:\/\/app:secret@db/prod}
        is "it is not printed" "$(grep -c secret <<<"$err")" 0
    done
    refused "two names to acquire" "unexpected argument 'y'" acquire x y --owner o
    refused "two names to wait for" "unexpected argument 'y'" wait x y
    refused "wait without a name" "too few arguments" wait
    refused "-n together with -w to wait" "exclude each other" wait -n -w 3 x
    refused "an interval of 0" "must be more than 0" watch --interval 0
    refused "an interval below 50ms" "at least 50ms" watch --interval 49ms
    refused "no looks at all" "number from 1" watch --count 0
    refused "two names to watch" "unexpected argument 'y'" watch x y
    refused "--waiters for show" "no such option here" show --waiters x
}

durations() {
    local text
    for text in 5x 1m30s -- -1 +1 '' . ms 1e3 0x10 ' 1' '1 ' inf nan 1,5 1.0.0 1.0000000001 \
        99999999999999999999 9223372036854775807d; do
        rl sweep "--older-than=$text"
        is "'$text' is no duration" "$status" 64
    done
    is "and the message shows what one looks like" "${err%%$'\n'*}" \
        "rowlock: sweep: --older-than: '9223372036854775807d' is not a duration such as 500ms, 1.5, 30s, 5m, 2h or 1d"
}

# The duration that was understood, read from the lease that it gave.
lease_of() {
    rl acquire "lease of $1" --json --ttl "$1"
    rl show "lease of $1" --json
    json '$d->{grants}[0]{ttl_ms}'
}

leases() {
    is "1.5 is seconds" "$(lease_of 1.5)" 1500
    is ".25 needs no digit before the point" "$(lease_of .25)" 250
    is "2. needs none after it" "$(lease_of 2.)" 2000
    is "500ms is milliseconds" "$(lease_of 500ms)" 500
    is "30s is seconds" "$(lease_of 30s)" 30000
    is "1.5m is 90 seconds" "$(lease_of 1.5m)" 90000
    is "2h is two hours" "$(lease_of 2h)" 7200000
    is "1d is a day" "$(lease_of 1d)" 86400000
    is "0.3 is 300 milliseconds, not a binary fraction's 299" "$(lease_of 0.3)" 300
    is "what is less than a millisecond is rounded up" "$(lease_of 0.1000001)" 101
}

# reads "what holds" STATUS ARGUMENT…: on the default database, which does not exist.
reads() {
    exits "without a database $1" "${@:2}"
    shift 2
    has "$* says that there is none" "$out$err" "does not exist"
    has "$* says what to run" "$out$err" "rowlock install"
    ok "$* creates nothing" test ! -e "$XDG_STATE_HOME"
}

no_database() {
    export XDG_STATE_HOME=$TMPDIR/no-state
    reads "list is empty" 0 list
    is "list still has its headings" "${out%% *}" "NAME"
    reads "list --json is empty" 0 list --json
    is "list --json is an empty array" "$out" "[]"
    reads "list --waiters is empty" 0 list --waiters
    reads "show finds nothing" 1 show x
    reads "show --json finds nothing" 1 show x --json
    is "show --json has no grants" "$(json 'scalar @{$d->{grants}}')" 0
    reads "wait finds the lock free" 0 wait x
    reads "watch ends" 78 watch
    reads "once list is empty" 0 once list
    reads "once forget finds no key" 1 once forget key
    reads "verify finds no grant" 76 verify x --owner o --token 1
    reads "renew finds no grant" 76 renew x --owner o --token 1
    reads "release finds no grant" 76 release x --owner o --token 1
    reads "break finds no grant" 1 break x
    reads "check is bad" 1 check
    has "check says that nothing is installed" "$out" "BAD   tables"
    reads "check --json is bad" 1 check --json
    is "check --json names the tables" "$(json '"$d->{worst} $d->{findings}[0]{item}"')" "bad tables"
    reads "sweep removes nothing" 0 sweep
    silent "sweep -q has nothing to do, and prints nothing" 0 sweep -q
    prints "install --print prints what installs, such as a table" 0 'CREATE TABLE IF NOT EXISTS "main"."rowlock_locks"' install --print
    is "and nothing for the shell of another database" "$(grep -c DELIMITER <<<"$out")" 0
    is "and no message" "$err" ""
    ok "it makes no database" test ! -e "$XDG_STATE_HOME"
    echo >"$TMPDIR/file"
    XDG_STATE_HOME=$TMPDIR/file errs "a file in the place of the folder is an error, which is named" 69 "$TMPDIR/file" list
    exits "raise-tokens creates the database" 0 raise-tokens
    ok "it is there" test -s "$XDG_STATE_HOME/rowlock/locks.db"
    export XDG_STATE_HOME=$TMPDIR/installed
    exits "install creates the database" 0 install
    ok "it is there, too" test -s "$XDG_STATE_HOME/rowlock/locks.db"
}

# The examples of --help are tried as they stand.
examples_of_help() {
    local example count=0
    mkdir -p "$work/bin"
    ln -sf "$command" "$work/bin/rowlock"
    ln -sf "$(type -P true)" "$work/report.sh"
    ln -sf report.sh "$work/deploy.sh"
    while IFS= read -r example; do
        count=$((count + 1))
        ok "an example of --help works: $example" \
            env -C "$work" PATH="$work/bin:$PATH" ROWLOCK_URL="sqlite:$work/help.db" bash -c "$example"
    done < <({ "$command" --help; "$command" run --help; } | sed -nE 's/^  (rowlock .*[^ ])  +.*/\1/p')
    is "there are examples" "$count" 6
}

embedded() {
    unset ROWLOCK_URL
    no_database
    export XDG_STATE_HOME=$TMPDIR/new-state
    exits "without a URL the first run needs no install" 0 run first -- true
    ok "it has made the embedded database" test -f "$XDG_STATE_HOME/rowlock/locks.db"
    is "in a folder for its user alone" "$(stat -c %a "$XDG_STATE_HOME/rowlock")" 700
    exits "then there is a list" 0 list
    is "and no message" "$err" ""
    (umask 0; XDG_STATE_HOME=relative HOME=$TMPDIR/home "$command" run first -- true)
    XDG_STATE_HOME=$TMPDIR/said errs "the user that makes it is told where: a URL may have been forgotten" 0 \
        "run: neither --url nor ROWLOCK_URL is set; made '$TMPDIR/said/rowlock/locks.db', for this host only" run first -- true
    ROWLOCK_REQUIRE_URL=1 errs "where that must not happen, it is an error" 64 "ROWLOCK_REQUIRE_URL is" run first -- true
    XDG_STATE_HOME=$TMPDIR/said silent "once, so that cron does not send mail each time" 0 run first -- true
    ok "a relative XDG_STATE_HOME is ignored for the one below HOME" \
        test -f "$TMPDIR/home/.local/state/rowlock/locks.db"
    ok "and no relative folder is made" test ! -e relative
    export XDG_STATE_HOME="$TMPDIR/odd %41 &# näme"
    exits "a folder's name may hold what means something in a URL" 0 run first -- true
    ok "and it is that very folder" test -f "$XDG_STATE_HOME/rowlock/locks.db"
    XDG_STATE_HOME='' HOME='' errs "without any home the error says what to do, namely to say --url" 64 "--url" list
    XDG_STATE_HOME=$TMPDIR/file exits "a folder that cannot be made is unreachable" 69 run x true
    errs "--url goes before the command, and elsewhere than in the embedded database, install is named" 78 "install" \
        --url "sqlite:$TMPDIR/other.db" list
    has "the file that is not there is named" "$err" "no such file"
    ok "and not left behind" test ! -e "$TMPDIR/other.db"
    exits "--url goes after it as well" 0 install --url "sqlite:$TMPDIR/other.db"
    exits "and wins over ROWLOCK_URL" 0 list --url "sqlite:$TMPDIR/other.db"
    ROWLOCK_URL="nosuch:thing" exits "an unknown kind of database is refused" 64 list
    ROWLOCK_URL="sqlite:" exits "so is a URL without a path" 64 list
    errs "and a database that ends with the command" 64 "in memory" --url sqlite::memory: install
    rl --url "sqlite:$TMPDIR/other.db.not" run x true
    is "that there are no tables is said once" "$(grep -c . <<<"$err")" 1
}

options_and_jobs() {
    gives "run leaves the options of its command alone, and passes them on" 0 "--json -n -w --help " run x printf '%s ' --json -n -w --help
    gives "with -- between them, too, where only the first -- is taken" 0 "-- --ttl " run x -n -- printf '%s ' -- --ttl
    exits "options of run may stand before the name" 0 run -n --ttl 5s x true
    exits "a name may begin with a dash after --" 0 run -- -x true
    gives "and another -- may follow it, which is not the command" 0 "a -- b " run -- -x -- printf '%s ' a -- b
    exits "though not without a command" 64 run -- -x --
    prints "and is that name" 0 "-x" show -- -x
    exits "options may be cut short" 0 run --non x true
    gives "an option's argument may look like --, and ends no names" 0 "a " run --note -- x printf '%s ' a
    gives "not even at the end of the line, where it is the command's" 0 "--note -- " run x printf '%s ' --note --
    gives "a -- for the command comes after run's own, and is passed on" 0 "a -- b " run x -- printf '%s ' a -- b
    gives "options may stand among several names, whose command begins after --" 0 "a " run x -n y --ttl 5s -- printf '%s ' a
}

empty_urls() {
    unset ROWLOCK_URL
    export XDG_STATE_HOME=$work/state
    errs "an empty --url is refused, by name" 64 "--url is empty" --url "" run -n x -- true
    ROWLOCK_URL='' errs "an empty ROWLOCK_URL is refused by name" 64 "ROWLOCK_URL is empty" run -n x -- true
    holds "and no lock was taken in a database of this host's own" test ! -e "$XDG_STATE_HOME"
}

silent_passwords() {
    local url
    for url in 'postgresql://u:SEC%ZZRET@127.0.0.1/x' 'postgresql://127.0.0.1/x?password=SEC%ZZRET' \
        'postgresql://u:SEC[RET@[::1/x' 'postgresql://u:SE/CRET@127.0.0.1:1/x' \
        'mysql://u:SEC%ZZRET@127.0.0.1/x' 'mysql://u:SE/CRET@127.0.0.1:1/x'; do
        case " ${ROWLOCK_TEST_BACKENDS:-postgres mysql sqlite} " in
            *" $(case $url in mysql*) echo mysql ;; *) echo postgres ;; esac) "*) ;;
            *) continue ;;
        esac
        exits "a URL that cannot be read is a usage error: ${url%%:*}" 64 --url "$url" list
        holds "and no part of its password is printed" test "${err/SE/}" = "$err"
    done
}

# A wait that is over after the first look has run out; it does not last for ever.
short_waits() {
    local n
    start run short -- sleep 60
    until_true "$command" show short
    for n in 1 2 3 5 8 13; do exits "a wait of $n ms ends" 75 run -v -w "${n}ms" short -- true; done
    errs "a wait of 400 days is refused in the option's words, and its limit" 64 "--wait: must be at most 366d" run -w 400d short -- true
    killed "the holder ends by the signal" TERM 143 "$pid"
}

# In a terminal of its own, the keys come from its other end. script(1) is of util-linux, or bsdutils.
keys_during_min_hold() {
    # The first ones may still go to touch, whose terminal it is.
    { until_true test -e "$work/done"; until [ -e "$work/over" ]; do printf '\003'; sleep 0.2; done; } | {
        timeout 60 script -qec "$command run --min-hold 1h keys -- touch $work/done" /dev/null >"$work/typescript" 2>&1
        echo $? >"$work/over"
    }
    is "Ctrl-C ends --min-hold" "$(<"$work/over")" 130
    answers "and leaves no lock, behind" 0 'scalar grep { $_->{name} eq "keys" } @$d' 0 list --json
}

help
manual
refusals
durations
if [ -n "${ROWLOCK_TEST_SQLITE_URL:-}" ]; then
    ROWLOCK_URL=$(private_url "$ROWLOCK_TEST_SQLITE_URL" usage_)
    export ROWLOCK_URL
    "$command" install >/dev/null
    leases
    options_and_jobs
    examples_of_help
    embedded
elif [ "${SKIPS_AS_FAILS:-0}" = 1 ]; then
    tap_result 1 "there is an embedded database to test with"
fi
empty_urls
silent_passwords
short_waits
keys_during_min_hold
done_testing
