#!/usr/bin/env bash
# The binary interface of the library, as programs that are linked with it see it. It needs
# abigail-tools, and a library with debug information.
#
# usage: tools/abi.sh dump LIBRARY        prints it
#        tools/abi.sh compare OLD NEW     prints what a program that is linked with OLD misses in
#                                         NEW. Both are dumps. The status is then 1.
# New functions, and new members at the end of a structure that begins with its size, are allowed.
set -euo pipefail
cd "$(dirname "$0")/.."

dump() {
    abidw --exported-interfaces-only --headers-dir include --drop-private-types --no-corpus-path \
        --no-comp-dir-path --no-show-locs --no-elf-needed --type-id-style hash "$1"
}

# Callers know the handles as pointers only. abidw finds a header by its name without the folder, so
# it takes structures of src/ for public ones.
opaque() {
    printf '[suppress_type]\nname_regexp = ^(rlk_.*|%s)$\n' \
        "$(sed -n 's/^typedef struct \(rowlock_[a-z_]*\) \1;$/\1/p' include/rowlock/*.h | paste -sd '|')"
}

# The structures that begin with their size.
sized() {
    awk '/^typedef struct .* {$/ { name = $3 } /^    size_t size;$/ && name { print name } /^    [a-z]/ { name = "" }' \
        include/rowlock/*.h
}

# shortened OLD NEW: NEW, in which those have as many members as in OLD, and the size.
shortened() {
    perl -e '
        my ($old, $new, %sized) = (shift, shift, map { $_ => 1 } @ARGV);
        my (%size, %members, $name, $left);
        sub lines { open my $file, "<", shift or die; return <$file> }
        for (lines($old)) {
            ($name, $size{$1}) = ($1, $2) if /<class-decl name=.([a-z_]+). size-in-bits=.(\d+)/;
            $members{$name}++ if $name && /<data-member /;
            undef $name if m{</class-decl>};
        }
        for (lines($new)) {
            if (/<class-decl name=.([a-z_]+). size-in-bits=/ && $sized{$1} && $size{$1}) {
                ($name, $left) = ($1, $members{$1});
                s/(size-in-bits=.)\d+/$1$size{$name}/;
            }
            $left-- if $name && /<data-member /;
            print unless $name && $left < 0 && !m{</class-decl>};
            undef $name if m{</class-decl>};
        }' "$@"
}

compare() {
    local work status=0
    work=$(mktemp -d)
    opaque >"$work/rules"
    mapfile -t names < <(sized)
    shortened "$1" "$2" "${names[@]}" >"$work/new.abi"
    abidiff --no-added-syms --suppressions "$work/rules" "$1" "$work/new.abi" || status=$?
    rm -rf "$work"
    [ $status = 0 ]
}

case $#${1:-} in
    2dump) dump "$2" ;;
    3compare) compare "$2" "$3" ;;
    *) sed -n 's/^# usage: /usage: /p; s/^#        t/       t/p' "$0" >&2; exit 64 ;;
esac
