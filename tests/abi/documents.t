#!/usr/bin/env bash
# The C examples of the documents and of the headers' comments compile. Every public function is in one of them,
# or in a program of examples/, which tests/cli/examples.t runs.
. "$(dirname "$0")/../lib/tap.sh"

flags=(-std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-unused-variable -Iinclude -fsyntax-only)

# document FILE: its blocks of C as FOLDER/1.c and so on.
document() {
    awk -v folder="$blocks" '/^```/ { file = $0 == "```c" ? folder "/" ++n ".c" : ""; next }
                             file { print > file }' "$1"
}

# header FILE: the same of its first comment. Code stands five columns in, and begins after an empty line.
header() {
    awk -v folder="$blocks" '/\*\/$/ { exit }
        /^ \*$/ { empty = 1; if (file) print "" > file; next }
        /^ \*     / { if (!file && empty) file = folder "/" ++n ".c"; if (file) print substr($0, 8) > file; empty = 0; next }
        { file = ""; empty = 0 }' "$1"
}

# Most blocks are statements, to be put into a function of the reader's. What they take for granted is declared here.
granted() {
    cat <<'END'
#include <rowlock/admin.h>
#include <rowlock/async.h>
#include <rowlock/once.h>
#include <rowlock/pool.h>
#include <rowlock/quorum.h>
#include <rowlock/tx.h>
#include <rowlock/walk.h>
#include <stdio.h>
typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
enum { PGRES_COMMAND_OK = 1 };
PGresult *PQexec(PGconn *conn, const char *sql);
int PQresultStatus(const PGresult *result);
int complain(const void *text_or_db);
void work(int64_t token);
void watch(int fd);
void charge(void);
void answer(const void *result);
void write_report(void);
extern PGconn *conn;
extern rowlock_db *db, *tx;
extern rowlock_lock *lock, *locks[3];
extern rowlock_table *prices;
extern rowlock_change changes[];
extern rowlock_acquire_options options;
extern size_t count, length;
int example(void);
END
}

in_function() {
    granted
    echo 'int example(void) {'
    grep -v '^#include' "$1"
    echo 'return 0; }'
}

# compiles FILE HOW: each of its blocks does, and is kept for later.
compiles() {
    local block unit=$TMPDIR/unit.c
    blocks=$TMPDIR/blocks/$1
    mkdir -p "$blocks"
    "$2" "$1"
    for block in "$blocks"/*.c; do
        [ -e "$block" ] || continue
        cp "$block" "$unit"
        grep -q '^{' "$block" || in_function "$block" >"$unit"
        ok "$1, example $(basename "$block" .c): it compiles" "${CC:-cc}" "${flags[@]}" "$unit"
    done
}

for file in README.md CONTRIBUTING.md docs/*.md sql/README.md; do compiles "$file" document; done
for file in include/rowlock/*.h; do compiles "$file" header; done
for name in rowlock tx async versions once value; do
    ok "$name.h has an example" test -e "$TMPDIR/blocks/include/rowlock/$name.h/1.c"
done

# words FILE…: the names in their code, without comments.
words() { cat "$@" | perl -0pe 's{/\*.*?\*/|//[^\n]*}{}gs' | grep -oE '\browlock_[a-z0-9_]+' | sort -u; }

public() {
    sed -n 's/^ *\(rowlock_[a-z0-9_]*\);$/\1/p' src/rowlock.map
    sed -n 's/^static inline rowlock_value \(rowlock_[a-z]*\)(.*/\1/p' include/rowlock/value.h
    sed -n 's/^static inline ROWLOCK_MUST_CHECK int \(rowlock_[a-z]*\)(.*/\1/p' include/rowlock/versions.h
}

mapfile -t shown < <(find "$TMPDIR/blocks" -name '*.c')
# rowlock_apply() is called by the functions of the header.
is "every public function is in an example" \
    "$(comm -23 <(public | grep -vx rowlock_apply | sort) <(words examples/*.c "${shown[@]}"))" ""

for program in examples/*.c; do
    ok "tests/cli/examples.t runs $program" \
        grep -qE "(programs/|example )$(basename "$program" .c)\b" tests/cli/examples.t
done

# named: each function whose comment names examples, and those.
named() {
    awk '/^ \* Example / { $1 = $2 = ""; files = $0 }
         /^$/ { files = "" }
         files && !/^ \*/ && match($0, /rowlock_[a-z0-9_]+\(/) { print substr($0, RSTART, RLENGTH - 1), files }' \
        include/rowlock/*.h
}
code_of() { case $1 in *.md) words "$TMPDIR/blocks/$1"/*.c ;; *) words "$1" ;; esac; }
wrong=$(named | tr -d , | while read -r name files; do
    for file in $files; do code_of "$file"; done | grep -qx "$name" || echo "$name: $files"
done)
is "each is where its comment says" "$wrong" ""

# A name with a slash is a file below tests/. The names behind it are in that file.
misnamed=$(perl -ne 'next unless ($table ||= /^\| what fails/) && /^\| /; next if /^\| what fails/;
    my ($tests) = /.* \| (.*) \|$/; my ($file, $text);
    for my $name ($tests =~ /`([^`]+)`/g) {
        if ($name =~ m{/}) { $file = "tests/$name"; $text = -e $file ? qx(cat $file) : "" }
        print "$name ($file)\n" unless $text && ($name =~ m{/} || $text =~ /\b\Q$name\E\b/);
    }
    print "no test: $_" unless $file' docs/ARCHITECTURE.md)
is "each row of the table of failures names tests that are there" "$misnamed" ""

# heads FILE: its headings as links name them.
heads() {
    awk '/^```/ { code = !code } !code && /^#+ /' "$1" |
        perl -pe 's/^#+ //; s/\]\([^)]*\)//g; $_ = lc; s/[^\w \n-]//g; tr/ /-/'
}
astray=$(grep -oE '\]\([^)[:space:]]+\.md(#[^)]*)?\)|\]\(#[^)]*\)' ./*.md ./*/README.md ./*/*/README.md docs/*.md |
    while IFS=: read -r file link; do
        link=${link:2:-1}
        page=${link%%#*} heading=${link#*#}
        [[ $link == http* ]] && continue
        page=${page:+$(dirname "$file")/$page}
        [ -e "${page:-$file}" ] || echo "$file: $link"
        [[ $link != *#* ]] || heads "${page:-$file}" | grep -qx -- "$heading" || echo "$file: $link"
    done)
is "each link between documents leads to a heading" "$astray" ""
unlisted=$(wc -l CONTRIBUTING.md SECURITY.md docs/*.md sql/README.md | awk '$1 > 100 && /\.md$/ { print $2 }' | while read -r page; do
    list=$(sed -n '/^## /q; /^On this page: /,/^$/p' "$page")
    awk '/^```/ { code = !code } !code && /^## /' "$page" | heads /dev/stdin | while read -r heading; do
        grep -qF "(#$heading)" <<<"$list" || echo "$page: $heading"
    done
done)
is "each page of more than two screens begins with a list of its sections" "$unlisted" ""

absent=$(grep -oE '\]\([^)]+\.svg\)' README.md docs/*.md | while IFS=: read -r file link; do
    [ -e "$(dirname "$file")/${link:2:-1}" ] || echo "$file: $link"
done)
is "each picture of a document is there" "$absent" ""
# What is told in examples/demo.sh up to the first mark of the shell or of XML.
is "the picture of the demo tells what the demo tells" \
    "$(grep -oE '>([0-9]\. |What you saw)[^<;]+' docs/demo.svg | tr -d '>')" \
    "$(sed -nE 's/^(tell ")?([0-9]\. [^";]*|What you saw:).*/\2/p' examples/demo.sh)"
is "each header with callbacks says that they must return" \
    "$(grep -lE '\(\*[a-z_]+\)\(void \*context' include/rowlock/*.h | xargs grep -L 'must return')" ""

done_testing
