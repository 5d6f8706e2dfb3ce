#!/usr/bin/env bash
# The worlds of tests/simulate, each with a seed that is always the same and with a new one. A
# failure tells its seed, and the command that runs it again.
. "$(dirname "$0")/../lib/tap.sh"

program=${ROWLOCK_TEST_BUILD:-build}/tests/simulate/simulate
grants=${ROWLOCK_TEST_GRANTS:-$([ -n "${ROWLOCK_TEST_LONG:-}" ] && echo 200000 || echo 1000)}
[ -x "$program" ] || skip_all "no SQLite"

sum() { grep -o 'sum [0-9a-f]*' <<<"$1"; }

for world in one keepers pool quorum rows; do
    first=$("$program" "$world" 1 "$grants" 2>&1)
    is "$world: $grants grants with faults keep all promises" "$?" 0
    tap_note "$first"
    again=$("$program" "$world" 1 "$grants" 2>&1)
    is "$world: the same seed tells the same story" "$(sum "$again")" "$(sum "$first")"
    new=$("$program" "$world" "$RANDOM$RANDOM" "$grants" 2>&1)
    is "$world: a new seed" "$?" 0
    tap_note "$new"
done
is "a world that does not exist is a usage error" "$("$program" nowhere 1 1 2>/dev/null; echo $?)" 64
is "each fault of tests/simulate/mutants can be planted" "$(sed '/^#/d; s/ *| */|/; s/ *| */|/2; s/ *| */|/3' tests/simulate/mutants |
    while IFS='|' read -r name _ file command; do
        ! sed "$command" "$file" | cmp -s - "$file" || echo "$name"
    done)" ""
done_testing
