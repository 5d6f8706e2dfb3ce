#!/usr/bin/env bash
# Each public header compiles alone, first and twice, in every dialect that callers use.
. "$(dirname "$0")/../lib/tap.sh"

flags=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wmissing-field-initializers -Werror -Iinclude -fsyntax-only)
strict_cxx=(-Wold-style-cast -Wzero-as-null-pointer-constant)
unit=$TMPDIR/unit

for header in include/rowlock/*.h; do
    name=$(basename "$header")
    printf "#include <rowlock/$name>\n#include <rowlock/$name>\n%s\n" \
        'int rowlock_header_test(void);' 'int rowlock_header_test(void) { return 0; }' >"$unit.c"
    sed 's/(void)/()/' "$unit.c" >"$unit.cc"
    for std in c99 c11 c17; do
        ok "$name is valid -std=$std" "${CC:-cc}" -std=$std "${flags[@]}" -Wstrict-prototypes "$unit.c"
    done
    for std in c++11 c++17 c++20; do
        ok "$name is valid -std=$std" "${CXX:-c++}" -std=$std "${flags[@]}" "${strict_cxx[@]}" "$unit.cc"
    done
done

# Their macros are expanded too. clang is stricter in C++, where it is installed.
{
    printf '#include <%s>\n' include/rowlock/*.h | sed 's|<include/|<|'
    echo 'void use(void); void use(void) {'
    grep -hoE '^#define ROWLOCK_[A-Z_]+_INIT\b' include/rowlock/*.h | while read -r _ macro; do
        type=${macro%_INIT} type=${type,,}
        echo "$type a_$type = $macro; (void)a_$type;"
    done
    echo 'rowlock_value v = rowlock_text("x"); int64_t n = ROWLOCK_FOREVER + ROWLOCK_SHARED; (void)v; (void)n; }'
} >"$unit.c"
cp "$unit.c" "$unit.cc"
for cc in "${CC:-cc}" $(command -v clang); do
    ok "all macros are valid C ($(basename "$cc"))" "$cc" -std=c11 "${flags[@]}" "$unit.c"
done
for cxx in "${CXX:-c++}" $(command -v clang++); do
    for std in c++17 c++20; do
        ok "all macros are valid -std=$std ($(basename "$cxx"))" "$cxx" -std=$std "${flags[@]}" "${strict_cxx[@]}" "$unit.cc"
    done
done

vendors=$(grep -hE '^ *# *include' include/rowlock/*.h | tr -d ' ' | grep -v '<rowlock/' | sort -u)
is "they include nothing but <stddef.h>, <stdint.h> and <string.h>" "$vendors" \
    $'#include<stddef.h>\n#include<stdint.h>\n#include<string.h>'
unknown=$(grep -hoE '#include <rowlock/[a-z]+\.h>' include/rowlock/*.h | cut -d '<' -f 2 | tr -d '>' |
    while read -r one; do [ -e "include/$one" ] || echo "$one"; done)
is "and each other" "$unknown" ""

done_testing
