#!/usr/bin/env bash
# A program that was linked with the last release works with this library: tools/abi.sh compares them. Planted changes
# are found. `make check-abidiff` runs it.
. "$(dirname "$0")/../lib/tap.sh"

# Not in TMPDIR, from which nothing may be run on some machines.
work=$(mktemp -d "${ROWLOCK_TEST_BUILD:-$TMPDIR}/abi.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

tools/abi.sh dump "${ROWLOCK_TEST_BUILD:-build}/librowlock.so" >"$work/now"
is "it tells each exported function" "$(grep -c '<function-decl ' "$work/now")" \
    "$(grep -cE '^ *rowlock_[a-z0-9_]+;$' src/rowlock.map)"
ok "a library is compatible with itself" tools/abi.sh compare "$work/now" "$work/now"

# planted SCRIPT: the library after a change of the headers, as a dump. It need not run.
tools/copy-source.sh "$work/tree"
planted() {
    cp include/rowlock/*.h "$work/tree/include/rowlock/"
    sed -i -e "$1" "$work"/tree/include/rowlock/*.h
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$work/tree" lib WERROR=0 CFLAGS='-O0 -g -w' &&
        "$work/tree/tools/abi.sh" dump "$work/tree/build/librowlock.so" >"$work/then"
}
differs() { ! tools/abi.sh compare "$work/now" "$work/then"; }

ok "a structure with its size gets a member at its end" planted '/^} rowlock_acquire_options;/i int planted;'
ok "which is allowed" tools/abi.sh compare "$work/now" "$work/then"
ok "it gets one in its middle" planted '/^typedef struct rowlock_acquire_options {/,/^}/s/^    size_t size;/& int planted; int64_t more;/'
ok "which is not" differs
ok "a structure without its size gets one" planted '/^} rowlock_change;/i int64_t planted;'
ok "which is not" differs
ok "an enumeration gets a value" planted 's/^    ROWLOCK_CONSTRAINT_VALUE = 5/&, ROWLOCK_PLANTED = 6/'
ok "which is allowed" tools/abi.sh compare "$work/now" "$work/then"

sed 's/rowlock_renew\b/rowlock_renewed/' "$work/now" >"$work/then"
ok "a function that is missing is found" differs

released=tests/abi/released.abi.gz
if [ ! -e $released ]; then
    tap_note "NOT COMPARED with a release: there is none yet (docs/RELEASING.md)"
elif [ "$(gzip -cd $released | grep -o "architecture='[^']*'")" != "$(grep -o "architecture='[^']*'" "$work/now")" ]; then
    tap_note "NOT COMPARED with the last release: $released is of another kind of processor"
else
    gzip -cd $released >"$work/released"
    ok "the library is compatible with the last release" tools/abi.sh compare "$work/released" "$work/now"
fi

done_testing
