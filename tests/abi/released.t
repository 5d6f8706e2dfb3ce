#!/usr/bin/env bash
# A routine that was released stays as it is: clients of that release call it after an upgrade too. A new body gets a new name
# (CONTRIBUTING.md).
. "$(dirname "$0")/../lib/tap.sh"

# changed RELEASED NOW: lines of RELEASED that NOW does not have.
changed() { comm -23 <(sort "$1") <(sort "$2"); }

tools/routine-sums >"$TMPDIR/now"
ok "there are routines" test -s "$TMPDIR/now"
is "no routine of a release has changed" "$(changed tests/abi/released.sums "$TMPDIR/now")" ""

mkdir -p "$TMPDIR/next"
cp -R sql "$TMPDIR/next/"
sed -i 's/RETURN 0;/RETURN -1;/' "$TMPDIR/next/sql/postgres/install/rowlock_grant_usual.sql"
sed -i 's/COMMIT;/ROLLBACK;/' "$TMPDIR/next/sql/mysql/install/rowlock_grant.sql"
sed -i '1i -- A comment more.' "$TMPDIR/next/sql/mysql/install/rowlock_renew.sql"
rm "$TMPDIR/next/sql/mysql/install/rowlock_fence.sql"
tools/routine-sums "$TMPDIR/next" >"$TMPDIR/then"
is "one that was changed or taken away would be found, and no comment" \
    "$(changed "$TMPDIR/now" "$TMPDIR/then" | cut -d ' ' -f 1,2 | tr '\n' ' ')" \
    "mysql rowlock_fence mysql rowlock_grant postgres rowlock_grant_usual "

done_testing
