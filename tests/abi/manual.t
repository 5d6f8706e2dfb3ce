#!/usr/bin/env bash
# The manual: its pages are correct mdoc, lead to pages that exist, and say what the command's help says.
. "$(dirname "$0")/../lib/tap.sh"

command=${ROWLOCK_TEST_COMMAND:-$PWD/build/rowlock}
manual=$TMPDIR/man
version=$("$command" --version | sed -n '1s/.* //p')
ok "the manual is made" tools/man-pages "$manual" "$version" docs/man/*.[1-9]

# mandoc looks for other pages where the system has its own.
for page in docs/man/*.[1-9]; do
    is "mandoc finds nothing to say about $page" "$(mandoc -Tlint "$manual/man${page##*.}/${page##*/}" 2>/dev/null |
        grep -v 'STYLE: referenced manual not found\|STYLE: operating system explicitly')" ""
done

# text PAGE: as a reader sees it, without line breaks.
text() { (cd "$manual" && mandoc -Tascii -Owidth=1000 "man${1##*.}/$1" 2>&1 | sed 's,.\x08,,g' | tr -s '[:space:]' ' '); }

missing=$(sed -n 's/^\.Xr \(rowlock[^ ]*\) \([1-9]\).*/\1.\2/p' docs/man/*.[1-9] | sort -u | while read -r page; do
    [ -e "$manual/man${page##*.}/$page" ] || echo "$page"
done)
is "every page that another one names is there" "$missing" ""
is "the footer names the version" "$(text rowlock.1 | grep -o "rowlock $version *$" | tr -d ' ')" "rowlock$version"

commands() { "$command" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'; }
is "rowlock(1) names every command" \
    "$(comm -23 <(commands | sort) <(grep -oE 'Cm [a-z].*' docs/man/rowlock.1 | tr -d , | tr ' ' '\n' | sort -u))" ""

# An option is there by its long name, or by its letter.
helps=$("$command" --help; for name in $(commands); do "$command" "$name" --help; done)
for name in $(commands | grep -vx help); do
    page=$(text "rowlock-$name.1")
    missing=$("$command" "$name" --help | sed -n '/^Options:/,$p' |
        sed -nE 's/^ *(-(.), |)--([a-z-]+).*/\3 \2/p' | while read -r long letter; do
        case $long in url | help) continue ;; esac
        case $page in *"--$long"* | *[^-]"-${letter:-no letter}"*) ;; *) echo "--$long" ;; esac
    done)
    is "rowlock-$name(1) has every option of its help" "$missing" ""
    absent=$(grep -v systemctl <<<"$page" | grep -oE -- '(^| )--[a-z]{2}[a-z-]*' | tr -d ' ' | sort -u | while read -r long; do
        grep -q -- "$long\b" <<<"$helps" || echo "$long"
    done)
    is "rowlock-$name(1) names no option that there is not" "$absent" ""
done

is "no quote has a dash before it, as the arguments of .Fl have" "$(grep -lE '^\.Fl .*(\\\(dq|"|\+)' docs/man/*.[1-9])" ""

# The exit statuses are in four places. sysexits.h has no EX_ for those below 64 and above 78.
statuses() { sed -nE 's/^ *EXIT_[A-Z_]+ = ([0-9]+),?$/\1/p' src/cli/exit.h | sed 's/^128$/128+/' | sort -n; }
is "rowlock(1) has each exit status of the source" \
    "$(sed -n '/^\.Sh EXIT/,/^\.Sh EXAMPLES/s/^\.It \([0-9]*+\{0,1\}\).*/\1/p' docs/man/rowlock.1 | sort -n)" "$(statuses)"
is "so has --help" "$("$command" --help | sed -n '/^Exit status:/,/^$/p' | grep -oE '(^|  )  ?[0-9]+  ?[a-z]|as 128' |
    tr -dc '0-9\n' | sed 's/^128$/128+/' | sort -n)" "$(statuses)"
is "OPERATIONS has no table of its own" "$(grep -E '^\| *(69|7[0-8])[, |]' docs/OPERATIONS.md)" ""

# statements FILE: SQL without comments and white space, one statement a line.
statements() { sed 's/ *-- .*//; s/…/.../g' "$1" | tr -d '[:space:]' | tr ';' '\n'; }
sed -n '/^\.Sh EXAMPLES/q; /^\.Bd/,/^\.Ed/{/^\./d; p}' docs/man/rowlock-sql.7 >"$TMPDIR/page.sql"
missing=$(statements "$TMPDIR/page.sql" | while read -r statement; do
    grep -qF -- "$statement" <<<"$(statements docs/GUARDING.md)" || echo "$statement"
done)
is "each statement of rowlock-sql(7) is one of GUARDING, which tests run" "$missing" ""

strange=$(sed -n '/^\.Sh GLOSSARY/,/^\.Sh SEE/p' docs/man/rowlock.7 | awk '
    /^\.It Em/ { if (word) print "| " word " |" text " |"; word = $3; text = ""; next }
    /^\.El/ { print "| " word " |" text " |"; exit }
    { text = text " " $0 }' | grep -vxFf <(tr -d '`' <CONTRIBUTING.md))
is "the glossary of rowlock(7) says what that of CONTRIBUTING says" "$strange" ""

# --- Section 3

public() {
    sed -n 's/^ *\(rowlock_[a-z0-9_]*\);$/\1/p' src/rowlock.map
    sed -n 's/^static inline rowlock_value \(rowlock_[a-z]*\)(.*/\1/p' include/rowlock/value.h
    sed -n 's/^static inline ROWLOCK_MUST_CHECK int \(rowlock_[a-z]*\)(.*/\1/p' include/rowlock/versions.h
}
is "every public function is named by a page of section 3" \
    "$(comm -23 <(public | sort) <(sed -n 's/^\.Nm \(rowlock_[a-z_]*\).*/\1/p' docs/man/*.3 | sort))" ""
is "and every public type is explained by one" \
    "$(comm -23 <(sed -n 's/^typedef .* \**\(rowlock_[a-z_]*\)\( {\|;\)$/\1/p' include/rowlock/*.h | sort) \
        <(sed -n 's/^\.\\" TYPE //p' docs/man/*.3 | tr ' ' '\n' | sort))" ""

# A prototype that differs from that of the header does not compile beside it.
for page in docs/man/*.3; do
    # shellcheck disable=SC2046 # words
    { printf '#include <rowlock/%s>\n' $(cd include/rowlock && echo *.h)
        text "$(basename "$page")" | sed 's/.* SYNOPSIS \(.*\) DESCRIPTION .*/\1/; s/#include <[^>]*>//g; s/;/;\n/g'; } >"$TMPDIR/page.c"
    ok "$(basename "$page"): the prototypes are those of the headers" \
        "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -Wno-unused -Iinclude -fsyntax-only "$TMPDIR/page.c"
    is "$(basename "$page"): there is one for each name" "$(grep -oE '\browlock_[a-z_]+ ?\(' "$TMPDIR/page.c" | tr -d ' (' | sort)" \
        "$(sed -n 's/^\.Nm \(rowlock_[a-z_]*\).*/\1/p' "$page" | sort | comm -12 - <(public | sort))"
done

# Marks of lists aside, a page has every word of the comments: of the function, and of each member of its types.
cat >"$TMPDIR/words.pl" <<'END'
use strict;
use warnings;
use utf8;
use open qw(:std :utf8);
my ($manual, @headers) = @ARGV;
my (%doc, %page, $missing);
sub plain { my $text = shift; $text =~ s/^\s*- //mg; $text =~ s/…/.../g; $text =~ tr/‐’‘/-'`/; $text =~ s/[•\s]//g; $text }
for my $header (@headers) {
    open my $in, '<', $header or die;
    my $text = do { local $/; <$in> };
    while ($text =~ m{/\*\ (.*?)\*/\n((?:(?!\n\n|/\*).)*)}gs) {
        my ($comment, $code, $before) = ($1, $2, substr($text, 0, $-[0]));
        next if $comment =~ /^SPDX|^---- |^-----|^sizeof/;
        $comment =~ s/^\s*\* ?//mg;
        my $type = ($before =~ /.*\n(?:typedef (?:struct|enum) (\w+) \{|\})/s) ? $1 : undef;
        my ($name) = $type ? $type : $code =~ /^(?:typedef \w+ (rowlock_\w+)|.*?\b(rowlock_[a-z_]+)\()/s;
        $name //= $code =~ /\b(rowlock_[a-z_]+)\(/ ? $1 : next;
        push @{$doc{$name}}, $comment;
    }
}
for my $name (sort keys %doc) {
    my $file = "$manual/man3/$name.3";
    print("$name has no page\n"), next unless -e $file;
    # A link leads to the page.
    my ($target) = do { local $/; open my $in, '<', $file or die; <$in> } =~ m{^\.so (.*)};
    $target //= "man3/$name.3";
    $page{$target} //= plain(do { local $/; open my $in, "cd $manual && mandoc -Tutf8 -Owidth=1000 $target | sed 's,.\x08,,g' |" or die; <$in> });
    my $plain = $page{$target};
    for my $comment (@{$doc{$name}}) {
        my $wanted = plain($comment);
        print "$name lacks: ", substr($comment, 0, 60), "\n" if index($plain, $wanted) < 0;
    }
}
print scalar(map { @$_ } values %doc), " comments\n";
END
LC_ALL=C.UTF-8 perl "$TMPDIR/words.pl" "$manual" include/rowlock/*.h >"$TMPDIR/said"
is "the pages say what the comments of the headers say" "$(sed '$d' "$TMPDIR/said")" ""
ok "which are more than 200 comments" test "$(sed -n '$s/ comments$//p' "$TMPDIR/said")" -gt 200

done_testing
