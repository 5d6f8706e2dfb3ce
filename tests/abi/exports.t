#!/usr/bin/env bash
# The shared library exports what src/rowlock.map lists, all of it and nothing else, under its soname.
. "$(dirname "$0")/../lib/tap.sh"

lib=${ROWLOCK_TEST_BUILD:-build}/librowlock.so

# A sanitizer or coverage adds names of its own to every object.
exported=$(nm -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    grep -vE '^(__(asan|ubsan|tsan|sanitizer|gcov|odr_asan|llvm)_|mangle_path$|_init$|_fini$)' | sort)
# The names of the "global:" parts, without comments.
listed=$(tr '\n' '\f' <src/rowlock.map | sed 's|/\*[^*]*\*/||g' | tr '\f' '\n' |
    awk '/global:/ { on = 1; sub(/.*global:/, "") } /local:/ { on = 0 } on' |
    tr -s ' \t;{}' '\n' | grep . | sort)
declared=$(cat include/rowlock/*.h | tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' |
    grep -oE '\browlock_[a-z0-9_]+ ?\(' | tr -d ' (' | sort -u)

is "the exported names are the listed ones" "$exported" "$listed"

missing=$(comm -13 <(echo "$declared") <(echo "$exported"))
is "the headers declare every exported name" "$missing" ""

# nodes MAP: each version node on a line of its own.
nodes() { tr '\n' '\f' <"$1" | sed 's|/\*[^*]*\*/||g' | tr -s ' \f' ' ' | sed 's/; *\(ROWLOCK_[0-9]\)/;\n\1/g' | grep . ; }
# changed RELEASED MAP: nodes of RELEASED that MAP does not have as they were.
changed() { comm -23 <(nodes "$1" | tr -d ' ' | sort) <(nodes "$2" | tr -d ' ' | sort); }
is "no node of a release has changed" "$(changed tests/abi/released.map src/rowlock.map)" ""
sed 's/rowlock_acquire;/rowlock_acquired;/' src/rowlock.map >"$TMPDIR/changed.map"
ok "a node that changed is found" test -n "$(changed src/rowlock.map "$TMPDIR/changed.map")"

major=$(awk '$2 == "ROWLOCK_VERSION_MAJOR" { print $3 }' include/rowlock/rowlock.h)
soname=$(readelf -d "$lib" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
is "the soname carries the header's major version" "$soname" "librowlock.so.$major"

ok "the archive keeps the same names" test -z "$(comm -23 <(echo "$exported") \
    <(nm -g --defined-only "${lib%.so}.a" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u))"

done_testing
