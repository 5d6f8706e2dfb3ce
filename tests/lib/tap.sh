# shellcheck shell=bash
# The Test Anything Protocol for tests written in bash. Sourced by tests/*/*.t, which run in the
# root of the repository.
#
#     ok "what should hold" COMMAND…        passes if COMMAND succeeds; otherwise shows its output
#     is "what should hold" GOT EXPECTED    passes if the two texts are equal
#     skip "what should hold" REASON        counts as passed, and done_testing names it. With
#                                           SKIPS_AS_FAILS=1 it has failed: a program is missing
#     cannot "what should hold" REASON      the same, but never fails: this user may not do it
#     passes_on "what was judged"           reads "ok - SENTENCE", "not ok - SENTENCE" and notes
#     skip_all REASON                       ends a script that cannot run here
#     done_testing                          comes last
set -u

tap_count=0
tap_failed=0
tap_skipped=()
: "${TMPDIR:=/tmp}"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

tap_result() { # tap_result STATUS NAME [PLACE]
    local place=${3:-}
    tap_count=$((tap_count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tap_count - $2"
        case $2 in *" # SKIP "*) tap_skipped+=("$2") ;; esac
    else
        printf 'not ok %d - %s\n# %s\n' $tap_count "$2" "${place:=$(tap_place)}"
        tap_failed=$((tap_failed + 1))
        tap_note "failed: $2 ($place)"
    fi
}

# The line of the script that asked for a check: FILE:LINE.
tap_place() {
    local i=1
    while [[ ${BASH_SOURCE[i]} != *.t && -n ${BASH_SOURCE[i + 1]:-} ]]; do i=$((i + 1)); done
    echo "${BASH_SOURCE[i]}:${BASH_LINENO[i - 1]}"
}

tap_note() {
    printf '%s\n' "$*" | sed 's/^/#   /' >&2
}

ok() {
    local name=$1 output status=0
    shift
    output=$("$@" 2>&1) || status=$?
    tap_result "$status" "$name"
    [ "$status" = 0 ] || tap_note "$*" "gave $status:" "$output"
}

is() {
    local status=0
    [ "$2" = "$3" ] || status=1
    tap_result "$status" "$1"
    [ "$status" = 0 ] || tap_note "got      $2" "expected $3"
}

cannot() { tap_result 0 "$1 # SKIP $2"; }

skip() {
    if [ "${SKIPS_AS_FAILS:-0}" = 1 ]; then
        tap_result 1 "$1"
        tap_note "skipped: $2"
    else
        cannot "$1" "$2"
    fi
}

passes_on() {
    local line
    while IFS= read -r line; do
        case $line in
            "ok - "*) tap_result 0 "$1: ${line#ok - }" ;;
            "not ok - "*) tap_result 1 "$1: ${line#not ok - }" ;;
            *) tap_note "$1: ${line#\# }" ;;
        esac
    done
}

skip_all() {
    echo "1..0 # SKIP $*"
    exit 0
}

done_testing() {
    echo "1..$tap_count"
    [ ${#tap_skipped[@]} = 0 ] ||
        printf '# %s: %d skipped: %s\n' "$0" ${#tap_skipped[@]} "$(printf '%s; ' "${tap_skipped[@]}")" >&2
    [ "$tap_failed" = 0 ]
}
