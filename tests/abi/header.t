#!/usr/bin/env bash
# Each public header compiles alone, first and twice, in every dialect that callers use.
. "$(dirname "$0")/../lib/tap.sh"

flags=(-Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -fsyntax-only)
unit=$TMPDIR/unit

for header in include/rowlock/*.h; do
    name=$(basename "$header")
    printf "#include <rowlock/$name>\n#include <rowlock/$name>\n%s\n" \
        'int rowlock_header_test(void);' 'int rowlock_header_test(void) { return 0; }' >"$unit.c"
    sed 's/(void)/()/' "$unit.c" >"$unit.cc"
    for std in c99 c11 c17; do
        ok "$name is valid -std=$std" "${CC:-cc}" -std=$std "${flags[@]}" -Wstrict-prototypes "$unit.c"
    done
    for std in c++11 c++17; do
        ok "$name is valid -std=$std" "${CXX:-c++}" -std=$std "${flags[@]}" "$unit.cc"
    done
done

vendors=$(grep -hE '^ *# *include' include/rowlock/*.h | tr -d ' ' | grep -v '<rowlock/' | sort -u)
is "they include nothing but <stddef.h>, <stdint.h> and <string.h>" "$vendors" \
    $'#include<stddef.h>\n#include<stdint.h>\n#include<string.h>'
unknown=$(grep -hoE '#include <rowlock/[a-z]+\.h>' include/rowlock/*.h | cut -d '<' -f 2 | tr -d '>' |
    while read -r one; do [ -e "include/$one" ] || echo "$one"; done)
is "and each other" "$unknown" ""

done_testing
