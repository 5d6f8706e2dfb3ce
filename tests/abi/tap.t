#!/usr/bin/env bash
# A failed check of a script is told with its file and line, also from a database's subshell.
. "$(dirname "$0")/../lib/tap.sh"

cat >"$TMPDIR/failing.t" <<END
. $PWD/tests/cli/cli.sh
is "a text" is another
checks() {
    holds "a promise" false
}
for_each_database checks
done_testing
END
said=$(ROWLOCK_TEST_BACKENDS=sqlite ROWLOCK_TEST_SQLITE_URL=sqlite:none bash "$TMPDIR/failing.t" 2>"$TMPDIR/notes")
is "a script with a failure fails" $? 1
is "the line after a failed check names its place" "$said" "not ok 1 - a text
# $TMPDIR/failing.t:2
not ok 2 - sqlite: a promise
# $TMPDIR/failing.t:4
# all of sqlite
ok 3 - sqlite: the tests went through to their end
1..3"
is "so do the notes" "$(grep -c "failed: .*a .* ($TMPDIR/failing.t:[24])$" "$TMPDIR/notes")" 2

done_testing
