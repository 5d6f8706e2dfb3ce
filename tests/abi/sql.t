#!/usr/bin/env bash
# The three dialects in sql/ have the same steps, each under its own name.
. "$(dirname "$0")/../lib/tap.sh"

# Examples of GRANT are for people, and SQLite has no GRANT. A few steps are one dialect's alone: sql/README.md.
steps() { (cd "sql/$1" && printf '%s\n' *.sql */*.sql | grep -vE '(/|^)(grants|rowlock_[a-z0-9_]+|await|wake|listen|look|routines|events|may_remake|remake|blockers|still_held|sweep|sweep_quiet|sweep_end|sweep_keys|acquire_met|acquire_usual|renew_usual|renew_all_usual|acquire_all|[a-z_]+_many|once_prove|row_lock|rows_(update|insert|remove|read|find|marked))\.sql$'); }

ok "there are statements" test -n "$(steps postgres)"
is "mysql has the steps of postgres" "$(steps mysql)" "$(steps postgres)"
is "sqlite has the steps of postgres" "$(steps sqlite)" "$(steps postgres)"
is "await is a statement on mysql alone" "$(echo sql/*/queue/await.sql)" sql/mysql/queue/await.sql
is "postgres wakes in its functions" "$(echo sql/*/queue/wake.sql)" "sql/mysql/queue/wake.sql sql/sqlite/queue/wake.sql"
is "acquire_all is one on the servers" "$(echo sql/*/lock/acquire_all.sql)" "sql/mysql/lock/acquire_all.sql sql/postgres/lock/acquire_all.sql"
is "once_prove is a statement on postgres alone" "$(echo sql/*/once/once_prove.sql)" sql/postgres/once/once_prove.sql
is "routines are listed on mysql alone" "$(echo sql/*/admin/routines.sql)" sql/mysql/admin/routines.sql
is "so are events" "$(echo sql/*/admin/events.sql)" sql/mysql/admin/events.sql
is "the right to make them is asked there too" "$(echo sql/*/upgrade/may_remake.sql)" sql/mysql/upgrade/may_remake.sql
is "routines are made again on the servers" "$(echo sql/*/upgrade/remake.sql)" "sql/mysql/upgrade/remake.sql sql/postgres/upgrade/remake.sql"
is "which tell what session is in the way" "$(echo sql/*/upgrade/blockers.sql)" "sql/mysql/upgrade/blockers.sql sql/postgres/upgrade/blockers.sql"
is "row_lock is a statement on sqlite alone" "$(echo sql/*/rows/row_lock.sql)" sql/sqlite/rows/row_lock.sql
is "rows_marked is a statement on mysql alone" "$(echo sql/*/rows/rows_marked.sql)" sql/mysql/rows/rows_marked.sql
is "look is a statement on sqlite alone" "$(echo sql/*/lock/look.sql)" sql/sqlite/lock/look.sql
is "still_held is a statement on mysql and sqlite" "$(echo sql/*/lock/still_held.sql)" "sql/mysql/lock/still_held.sql sql/sqlite/lock/still_held.sql"
is "renewals by one UPDATE are on mysql alone" "$(echo sql/*/lock/renew*_usual.sql)" "sql/mysql/lock/renew_all_usual.sql sql/mysql/lock/renew_usual.sql"
is "a batch of a sweep is one statement where DELETE answers rows" "$(echo sql/*/admin/sweep.sql)" "sql/postgres/admin/sweep.sql sql/sqlite/admin/sweep.sql"
is "with a text that does not" "$(echo sql/*/admin/sweep_quiet.sql)" "sql/postgres/admin/sweep_quiet.sql sql/sqlite/admin/sweep_quiet.sql"
is "on sqlite its end is asked before" "$(echo sql/*/admin/sweep_end.sql)" sql/sqlite/admin/sweep_end.sql
is "mysql deletes by the keys that were read" "$(echo sql/*/admin/sweep_keys.sql)" sql/mysql/admin/sweep_keys.sql
for step in rows_update rows_insert rows_remove rows_read rows_find; do
    is "$step is one on the servers" "$(echo sql/*/rows/$step.sql)" "sql/mysql/rows/$step.sql sql/postgres/rows/$step.sql"
done

# The first line that is no comment is what a DBA sees in the process list.
unnamed=$(awk 'function told() { if (before !~ /\/(grants|clock|tables|rowlock_[a-z0-9_]*)\.sql$/ && !named) print before }
    FNR == 1 { if (before) told(); before = FILENAME; named = met = 0 }
    met || /^[[:space:]]*(--|$)|^DELIMITER/ { next }
    { met = 1; name = FILENAME; gsub(/.*\/|\.sql$/, "", name); named = index($0, "/* rowlock:" name " */") == 1 }
    END { told() }' sql/*/*.sql sql/*/*/*.sql)
is "each statement begins with its step's name" "$unnamed" ""
is "each file begins with a comment on its step" "$(awk 'FNR == 1 && !/^--/ { print FILENAME }' sql/*/*.sql sql/*/*/*.sql)" ""

is "no line is longer than 100 columns" "$(awk 'length > 100 { print FILENAME; nextfile }' sql/*/*.sql sql/*/*/*.sql)" ""

# PostgreSQL looks functions up by search_path, where anybody's may fit better. Of several arguments unnest is
# always its own. What operators are found is for tests/contract/test_traps_postgres.c.
own='rowlock_[a-z_]+|coalesce|greatest|unnest|bit'
loose=$(cat sql/postgres/{,*/}*.sql | grep -vE '^ *--' | sed -E "s/'[^']*'//g" | grep -oE '(^|[^.a-z0-9_])[a-z_][a-z0-9_]*\(' |
    sed -E 's/^[^a-z_]//' | grep -vE "^($own)\($" | sort -u)
is "each function of postgres is called by its schema" "$loose" ""
is "unnest of one array too" "$(grep -nE '(^|[^.])\bunnest\([^,]*\)' sql/postgres/{,*/}*.sql)" ""

# A file of install/ makes one routine and has its name.
misnamed=
forgotten=
long=
for file in sql/*/install/rowlock_*.sql; do
    folder=${file%/*} name=${file##*/} name=${name%.sql}
    made=$(grep -oE '^CREATE (OR REPLACE (FUNCTION|PROCEDURE)|PROCEDURE IF NOT EXISTS) rowlock_[a-z0-9_]+' "$file")
    if [ "${made##* }" != "$name" ]; then misnamed+=" $file"; fi
    for list in "schema.sql {$name}" "drop.sql EXISTS ${name}[(;]" "grants.sql (${name}[, ;]|:\"${name#rowlock_}\")"; do
        grep -qE -- "${list#* }" "$folder/${list%% *}" || forgotten+=" $name in $folder/${list%% *}"
    done
    if [ "$(sed '1,/^CREATE /d' "$file" | wc -l)" -ge 60 ]; then long+=" $file"; fi
done
is "each file of a routine makes the one that it is named for" "$misnamed" ""
is "each routine is made, dropped and granted" "$forgotten" ""
is "none is longer than 60 lines" "$long" ""

# What stands in braces in templates is completed by src/rows/compose.c, which knows these words and no others. The
# words of other steps are in the list of steps: tests/drivers/test_statements.c.
words=$(cat sql/*/rows/*.sql | grep -vE '^(--|\\if )' | grep -oE '\{[^}]*\}' | tr -d '{}' | sed 's/:.*//' | grep -vx lock | sort -u)
known=$(grep -oE 'IS\("[a-z]+"\)' src/rows/compose.c | cut -d '"' -f 2 | sort)
is "every word in braces is one that is known" "$(comm -23 <(echo "$words") <(echo "$known"))" ""
is "every word that is known is in some statement" "$(comm -13 <(echo "$words") <(echo "$known"))" ""
undescribed=
for word in $known 'lock:A\|B'; do grep -qF "\`{$word}\`" sql/README.md || undescribed+=" $word"; done
is "sql/README.md describes each of them" "$undescribed" ""
named=$(grep '^|' sql/README.md | grep -oE '`[a-z0-9_]+`' | tr -d '\`' | sort -u)
is "and each step" "$(comm -23 <(printf '%s\n' sql/*/*.sql sql/*/*/*.sql | grep -v '/install/rowlock_' |
    sed 's|.*/||; s|\.sql$||' | sort -u) <(echo "$named"))" ""

# A routine that was released stays as it is: clients of that release call it after an upgrade too. A new body gets a new
# name (CONTRIBUTING.md).
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
