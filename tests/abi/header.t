#!/usr/bin/env bash
# The public header compiles alone, first and twice, in every dialect that callers use.
set -u
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

unit=$TMPDIR/unit
printf '#include <rowlock/rowlock.h>\n#include <rowlock/rowlock.h>\n%s\n' \
    'int rowlock_header_test(void);' 'int rowlock_header_test(void) { return ROWLOCK_VERSION_MAJOR; }' \
    >"$unit.c"
sed 's/(void)/()/' "$unit.c" >"$unit.cc"
flags=(-Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -fsyntax-only)

for std in c99 c11 c17; do
    ok "the header is valid -std=$std" "${CC:-cc}" -std=$std "${flags[@]}" -Wstrict-prototypes "$unit.c"
done
for std in c++11 c++17; do
    ok "the header is valid -std=$std" "${CXX:-c++}" -std=$std "${flags[@]}" "$unit.cc"
done

vendors=$(grep -E '^ *# *include' include/rowlock/rowlock.h | tr -d ' ' | sort)
is "it includes nothing but <stddef.h> and <stdint.h>" "$vendors" \
    $'#include<stddef.h>\n#include<stdint.h>'

done_testing
