#!/usr/bin/env bash
# The C examples of README.md and docs/VERSIONS.md compile. Those of the README are statements, to be put into a
# function of the reader's, and what they take for granted is declared here.
set -u
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

flags=(-std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-unused-result -Iinclude -fsyntax-only)

# split DOCUMENT: its blocks of C as block-1.c and so on.
split() {
    rm -f "$TMPDIR"/block-*.c
    awk -v folder="$TMPDIR" '/^```/ { file = $0 == "```c" ? folder "/block-" ++n ".c" : ""; next }
                             file { print > file }' "$1"
}

granted() {
    cat <<'END'
#include <rowlock/versions.h>
#include <stdio.h>
typedef struct pg_conn PGconn;
void *PQexec(PGconn *conn, const char *sql);
int complain(const char *text);
void work(int64_t token);
extern PGconn *conn;
extern rowlock_db *db, *tx;
extern rowlock_lock *lock, *locks[3];
extern rowlock_acquire_options options;
int example(void);
END
}

in_function() {
    grep '^#include' "$1"
    granted
    echo 'int example(void) {'
    grep -v '^#include' "$1"
    echo 'return 0; }'
}

split docs/VERSIONS.md
for block in "$TMPDIR"/block-*.c; do
    ok "docs/VERSIONS.md, $(basename "$block" .c): it compiles" "${CC:-cc}" "${flags[@]}" "$block"
done

split README.md
for block in "$TMPDIR"/block-*.c; do
    in_function "$block" >"$TMPDIR/unit.c"
    ok "README.md, $(basename "$block" .c): it compiles" "${CC:-cc}" "${flags[@]}" "$TMPDIR/unit.c"
done

done_testing
