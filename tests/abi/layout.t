#!/usr/bin/env bash
# The rules of tools/check-layout hold for the tree, and the tool reports planted faults.
. "$(dirname "$0")/../lib/tap.sh"

ok "comments stand above what they are about, and lines have at most 100 columns" tools/check-layout

# plant FILE TEXT: a tree with this one file. Prints what the tool reports.
plant() {
    rm -rf "$TMPDIR/tree"
    mkdir -p "$TMPDIR/tree/$(dirname "$1")"
    printf '%s\n' "$2" >"$TMPDIR/tree/$1"
    tools/check-layout "$TMPDIR/tree"
}

member='a comment stands behind a member'
is "a comment behind a member of a struct is a fault" \
    "$(plant src/lock/a.h $'struct a {\n    int b; /* its b */\n};')" "src/lock/a.h:2: $member"
is "and one of several lines" \
    "$(plant src/lock/a.h $'struct a {\n    int b; /* its\n            * b */\n};')" "src/lock/a.h:2: $member"
is "and one behind a statement" "$(plant src/a.c $'void f(void)\n{\n    g(); /* why */\n}')" \
    "src/a.c:3: a comment stands behind a statement"
is "and one behind a declaration" "$(plant src/a.h $'int f(void); /* what */')" \
    "src/a.h:1: a comment stands behind a statement"
is "and one behind the value of an enum" \
    "$(plant include/a.h $'enum { A, /* the first */\n       B };')" "include/a.h:1: $member"
is "a comment above it is none" "$(plant src/a.h $'struct a {\n    /* its b */\n    int b;\n};')" ""
is "a label of a row of a table is none" \
    "$(plant src/a.c $'static const struct a as[] = {\n    {1}, /* the first */\n};')" ""
is "nor is one in a #define" "$(plant src/a.c $'#define ROWS \\\n    ROW(A) /* the first */ \\\n    ROW(B)')" ""
is "a comment behind a column in SQL is a fault" \
    "$(plant sql/sqlite/a.sql $'-- A table.\nCREATE TABLE a (b -- its b\n);')" \
    "sql/sqlite/a.sql:2: a comment stands behind code"

long=$(printf 'word %.0s' {1..21})
is "a line of 101 columns is a fault" "$(plant examples/a.c "$(printf '%0101d' 0)")" \
    "examples/a.c:1: more than 100 columns"
is "one of 100 is none" "$(plant examples/a.c "$(printf '%0100d' 0)")" ""
is "columns are characters" "$(plant docs/a.md "$(printf 'é%.0s' {1..100})")" ""
is "prose in Markdown has 100 columns too" "$(plant docs/a.md "$long")" "docs/a.md:1: more than 100 columns"
is "but not a row of a table" "$(plant docs/a.md "| $long |")" ""
is "nor a block of code" "$(plant docs/a.md $'```\n'"$long"$'\n```')" ""
is "nor a line with a link" "$(plant docs/a.md "[a]($long)")" ""

done_testing
