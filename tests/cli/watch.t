#!/usr/bin/env bash
# `rowlock watch`: as text, as JSON, and as a screen on a terminal, which is resized, ended in every way, and
# shown names that want to break it. On each database.
. "$(dirname "$0")/cli.sh"
own_servers
export LC_ALL=C.UTF-8

printing() {
    counts "watch prints where there is no terminal, once in an interval, as often as --count says" 0 2 \
        ' held, .* waiting, .* grants/s$' watch --count 2 --interval 50ms
    rl acquire printed --owner me --ttl 1h --note 'a note'
    start acquire printed --owner other
    until_true queued printed
    counts "it prints holders and the line in numbers" 0 1 '^1 held, 1 waiting, 0.0 grants/s$' watch --count 1
    has "a row for the holder" "$(grep -c '^printed .* exclusive .* a note$' <<<"$out")" 1
    has "and one for the waiter" "$(sed '1,/POSITION/d' <<<"$out" | grep -c '^printed  *1  *exclusive ')" 1
    gives "of one lock only, if asked so, which is free" 0 "0 held, 0 waiting, 0.0 grants/s" watch other --count 1
    counts "--json prints a line for each look, and nothing else" 0 3 '' watch printed --count 3 --interval 50ms --json
    same "an object" "$(json '"$d->{result} $d->{grants}[0]{name} $d->{waiters}[0]{position} $d->{granted}"' \
        "$(tail -n 1 <<<"$out")")" "ok printed 1 0"
    end "$pid"
    rl break printed
    "$command" watch --interval 50ms 2>/dev/null | head -n 1 >/dev/null
    holds "it ends when its output is closed" test "${PIPESTATUS[0]}" != 0
    begun "$work/bg.out" watch --interval 50ms
    killed "or by a signal" INT 130 "$pid"
    exits "a database without tables is the end of it, too" 78 watch --url "$(private_url "$(url_of "$db")" elsewhere_)"
    exits "a name that is not acceptable is 64" 64 watch ""
}

granted() { perl -MJSON::PP -ne '$sum += decode_json($_)->{granted}; END { print $sum }' "$work/bg.out"; }
granted_is() { [ "$(granted)" = "$1" ]; }

counting() {
    rl acquire counted --owner me --ttl 1h
    begun "$work/bg.out" watch --json --interval 100ms
    for _ in 1 2 3; do rl acquire counted --owner me --ttl 1h; done
    holds "grants are counted by their tokens" until_true granted_is 3
    rl acquire fresh --owner me --ttl 1h
    holds "and those of names that were not seen before" until_true granted_is 4
    rl raise-tokens --by 1000000
    rl acquire counted --owner me --ttl 1h
    holds "tokens that were raised are no grants" until_true granted_is 5
    [ "$db" != postgres ] || between_queries
    end "$pid"
    rl break counted
    rl break fresh
}

# A look asks for the locks, then for the waiters. The second query waits here.
between_queries() {
    start_client
    say "BEGIN"
    say "LOCK TABLE rowlock_waiters IN ACCESS EXCLUSIVE MODE"
    until_true a_look_waits
    say "INSERT INTO rowlock_locks
        SELECT 'between', slot, permits, owner, 1, 1, floor(extract(epoch FROM clock_timestamp()) * 1000000), expires, ttl
        FROM rowlock_locks WHERE name = 'counted'"
    say "SELECT pg_sleep(0.1)"
    say "COMMIT"
    stop_client
    holds "a grant between the two queries of a look is not forgotten" until_true granted_is 6
    rl break between
}

a_look_waits() {
    say "SELECT count(*) FROM pg_locks WHERE relation = 'rowlock_waiters'::regclass AND NOT granted"
    [ "$said" = 1 ]
}

# open_screen ROWS COLUMNS OPTION…: watch on a terminal of that size, whose other end is script(1). What it
# sends is in $work/screen, the keys it gets come from file descriptor 9.
open_screen() {
    local rows=$1 columns=$2 line
    shift 2
    printf -v line '%q ' "$command" watch --interval 100ms "$@"
    rm -f "$work/keys" "$work/tty" "$work/tty.new" "$work/after"
    : >"$work/screen"
    mkfifo "$work/keys"
    SHELL=/bin/sh TERM=${terminal:-vt100} timeout $((800 * slow)) script -qefc "trap : INT; stty rows $rows cols $columns; stty -g >$work/before
        tty >$work/tty.new; mv $work/tty.new $work/tty; $line; s=\$?; stty -g >$work/after; exit \$s" "$work/screen" \
        <"$work/keys" >/dev/null 2>&1 &
    pid=$!
    exec 9>"$work/keys"
    begun=0 size="$rows $columns"
    until_true test -s "$work/tty"
}

# Everything is drawn anew then, so what was sent before does not count.
resize_screen() {
    begun=$(stat -c %s "$work/screen") size="$1 $2"
    stty -F "$(cat "$work/tty")" rows "$1" cols "$2"
}

# script(1) writes a line of its own before and after. Sets $shown.
look() {
    # shellcheck disable=SC2086 # they are two numbers
    shown=$(tail -c +$((begun + 1)) "$work/screen" | sed '1{/^Script started/d}' | "$python" tests/lib/screen.py $size 2>"$work/strange")
}

shows() {
    look
    grep -Eq -- "$1" <<<"$shown"
}

# seen "what holds" PATTERN
seen() {
    local status=0
    until_true shows "$2" || status=1
    tap_result $status "$(about "$1")"
    [ $status = 0 ] || tap_note "$shown"
}

# closes "what holds" N [KEYS]: after the keys it ends with N.
closes() {
    printf %b "${3:-}" >&9
    exec 9>&-
    ends "$1" "$2" "$pid"
}

# All rows have their second column where it belongs, and no row is longer than the screen is wide.
aligned() {
    look
    printf '%s\n' "$shown" | WIDTH=${size#* } perl -CS -ne '
        sub width { my $w = 0; $w += /\p{Mn}|\p{Cf}/ ? 0 : ord >= 0x1100 && /\p{East_Asian_Width=W}|\p{East_Asian_Width=F}/ ? 2 : 1 for split //, $_[0]; $w }
        chomp;
        $state = index $_, "STATE" if /^NAME +STATE/;
        die "too wide: $_\n" if width($_) > $ENV{WIDTH};
        if (/^(.*?) (holds|expired)  +/ && $. > 2) { $rows++; die "not aligned: $_\n" if width("$1 ") != $state }
        END { exit 1 if !$? && !$rows }'
}

screen() {
    local name long
    long=$(printf 'x%.0s' {1..255})
    rl acquire shown --owner me --ttl 1h --note 'a note'
    start acquire shown --owner other
    until_true queued shown
    local waiter=$pid
    open_screen 24 80
    seen "on a terminal there is a screen" '^rowlock: 1 held, 1 waiting, .* grants/s *$'
    seen "with headings" '^NAME +STATE +KIND +WHO +FOR +LEASE *$'
    seen "with the holder" '^shown +holds +exclusive +rowlock\[[0-9]+\]@.* (59m|60m)'
    seen "and the waiter" '^shown +1\. +exclusive +rowlock\['
    seen "and how to go on" '^q quit'
    rl acquire appears --owner me --ttl 1h
    seen "what comes is shown" '^appears +holds '
    expire appears
    seen "and that its lease is over" '^appears +expired .* -[0-9.]+s'
    rl sweep
    for name in $'new\nline \e[2J\a' '漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字' "$long" $'z\xcc\x80\xcc\x81\xcc\x82\xcc\x83\xcc\x84''algo' \
        $'\xe2\x80\xaeturned' $'jo\xe2\x80\x8din' $'\xc2\x9b2J' '🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒🔒'; do
        rl acquire --json --ttl 1h --note "$name" -- "$name"
    done
    seen "names that a terminal would obey are shown" '^new.x0aline .x1b\[2J'
    seen "so is a name of 255 bytes, cut" '^x+~ holds'
    seen "and wide ones" '^漢字.*~ +holds'
    seen "what turns the writing is shown as text" '^.xe2.x80.xaeturned'
    seen "and what joins characters is a question mark" '^jo[?]in +holds'
    holds "no row is out of place" aligned
    same "nothing strange was sent" "$(cat "$work/strange")" ""
    resize_screen 9 120
    seen "a wider terminal shows the notes" '^NAME +STATE +KIND +WHO +FOR +LEASE +NOTE *$'
    seen "and a lower one fewer rows" '^q quit.* [1-9] below'
    holds "in their places" aligned
    printf '\e[B' >&9
    printf '\eOB' >&9
    seen "arrows scroll" '[12] above'
    # A row that appears later would be below.
    rl list --json
    seen "all of them are there" "^rowlock: $(grep -o '"token"' <<<"$out" | wc -l) held"
    printf 'G \e[6~    ' >&9
    seen "pages as well" ' 0 below'
    holds "and everything stays in its place" aligned
    same "nothing strange was sent for that" "$(cat "$work/strange")" ""
    resize_screen 10 34
    seen "a narrow one shows less" '^NAME +STATE +LEASE *$'
    holds "in its places, too" aligned
    resize_screen 2 10
    seen "the smallest shows what it can" '^rowlock: [~0-9]'
    resize_screen 1 1
    resize_screen 24 80
    seen "and it recovers" '^NAME +STATE +KIND +WHO'
    same "without anything strange sent" "$(cat "$work/strange")" ""
    closes "q ends it" 0 q
    same "and the terminal is as it was" "$(cat "$work/after")" "$(cat "$work/before")"
    end "$waiter"
}

ending() {
    open_screen 24 80
    seen "a screen again" '^q quit'
    closes "which Ctrl-C ends" 130 '\003'
    same "leaving the terminal as it was" "$(cat "$work/after")" "$(cat "$work/before")"
    terminal=xterm open_screen 24 80 --count 2
    closes "--count ends it" 0
    has "and what was on the terminal before is there again" "$(cat "$work/screen")" $'\e[?1049l'
    LC_ALL=C open_screen 24 80
    seen "where only ASCII can be shown, other characters are question marks" '^\?+~? +holds'
    same "each one" "$(cat "$work/strange")" ""
    closes "q ends that too" 0 q
    terminal=no-such-terminal open_screen 24 80 --count 1
    closes "an unknown terminal is printed to" 0
    has "as if it were none" "$(cat "$work/screen")" " waiting, "
}

# A server that hangs, and one that goes away.
failing() {
    own_server || return
    open_screen 24 200
    seen "a screen of a server" '^q quit'
    server freeze
    seen "that a server hangs is shown" '^as of .* ago; '
    closes "and q ends it all the same" 0 q
    server thaw
    open_screen 24 200
    seen "a screen of a server that" '^q quit'
    server stop
    seen "goes away shows that" '^as of .* ago; '
    server start
    seen "and that it is back" '^q quit'
    closes "and ends well" 0 q
    begun "$work/bg.out" watch --json --interval 200ms
    server stop
    holds "JSON tells of it as well" until_true grep -q '"error": "' "$work/bg.out"
    server start
    holds "and goes on" until_true tail_is_ok
    end "$pid"
}

tail_is_ok() { [ "$(tail -n 1 "$work/bg.out" | perl -MJSON::PP -ne 'print decode_json($_)->{result}')" = ok ]; }

on_terminal() {
    needs script screen && has_module pyte || return
    if "$command" watch --help | grep -q 'not built in'; then
        [ "${ROWLOCK_TEST_CURSES:-1}" = 0 ] || skip "$(about screen)" "there is no ncurses"
    else
        screen
        ending
        failing
    fi
}

for_each_database install_tables printing counting on_terminal
done_testing
