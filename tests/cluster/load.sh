# shellcheck shell=bash disable=SC2154
# The load (load.c) for fault scripts; sourced by tests/cluster/*.t after tests/drivers/failover.sh or
# tests/cli/cli.sh, which set $work and $status. LOAD_URLS names the database, and LOAD_INSTALL_URL
# the server to install on.
#
#     load_install          makes the tables; once for each database
#     load_begin NAME       starts a load, and returns when it has had some grants
#     load_mark WHAT        writes into its history what the script does. Between `cut` and `back` no
#                           renewal reaches the database
#     load_goes_on WHAT [N] passes when N (100) more grants were made
#     load_survives WHAT MARK [N]
#                           both: the mark, and the grants after it
#     load_outage           marks an outage that is longer than a lease
#     load_end WHAT [--may-lose | SENTENCE]
#                           ends it, and passes or fails for each sentence of the judge. Prints figures
#     load_breaks WHAT SENTENCE
#                           ends it, and passes when the judge finds this sentence broken
#
# LOAD_KEEP names a folder in which the histories are kept.

load=${ROWLOCK_TEST_BUILD:-build}/tests/cluster/load
load_folder=
load_pid=

load_install() { ok "the tables of the load are made" "$load" install; }

load_begin() {
    load_folder=$work/$1
    mkdir -p "$load_folder"
    "$load" run "$load_folder" >"$load_folder/out" 2>&1 </dev/null 3>&- 4>&- &
    load_pid=$!
    load_goes_on "$1: the load gets grants" 50
}

load_mark() { "$load" mark "$load_folder" "$1"; }

# Longer than a lease of the load.
OUTAGE_S=7
load_outage() { load_mark cut; sleep $OUTAGE_S; load_mark back; }

load_has() { running "$load_pid" && [ "$("$load" grants "$load_folder")" -ge "$1" ]; }

load_goes_on() {
    local before
    before=$("$load" grants "$load_folder")
    ok "$1" until_true 60 load_has $((before + ${2:-100}))
}

load_survives() { load_mark "$2"; load_goes_on "$1" "${3:-100}"; }

load_end() {
    touch "$load_folder/stop"
    finished "$load_pid"
    is "$1: the load ends, and its history is complete" "$status" 0
    [ "$status" = 0 ] || tap_note "$(tail -n 5 "$load_folder/out")"
    passes_on "$1" < <("$load" judge "$load_folder" "${@:2}")
    [ -z "${LOAD_KEEP:-}" ] || cp -r "$load_folder" "$LOAD_KEEP/"
}

load_breaks() {
    touch "$load_folder/stop"
    finished "$load_pid"
    "$load" judge "$load_folder" --may-lose >"$load_folder/verdict"
    ok "$1" grep -qxF "not ok - $2" "$load_folder/verdict"
    tap_note "$(sed 's/^#/ /' "$load_folder/verdict")"
}
