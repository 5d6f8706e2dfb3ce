#!/usr/bin/env bash
# What people get wrong: empty variables, mistyped paths, passwords in URLs, keys pressed at odd times.
# No server is used.
. "$(dirname "$0")/cli.sh"

export XDG_STATE_HOME=$work/state

empty_urls() {
    errs "an empty --url is refused, by name" 64 "--url is empty" --url "" run -n x -- true
    ROWLOCK_URL='' errs "an empty ROWLOCK_URL is refused by name" 64 "ROWLOCK_URL is empty" run -n x -- true
    holds "and no lock was taken in a database of this host's own" test ! -e "$XDG_STATE_HOME"
}

mistyped_path() {
    errs "a command on a file that is not there fails, and says so" 78 "no such file" --url "sqlite:$work/typo.db" list
    holds "without leaving one behind" test ! -e "$work/typo.db"
    exits "install makes it" 0 --url "sqlite:$work/typo.db" install
    exits "then there is a list" 0 --url "sqlite:$work/typo.db" list
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

unset ROWLOCK_URL
empty_urls
mistyped_path
silent_passwords
short_waits
keys_during_min_hold
done_testing
