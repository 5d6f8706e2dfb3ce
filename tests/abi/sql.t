#!/usr/bin/env bash
# The three dialects in sql/ have the same steps, each under its own name.
. "$(dirname "$0")/../lib/tap.sh"

# only DIALECT…: the steps of these dialects and of no other. Routines, texts of GRANT and {interrupted} are no steps.
only() {
    (cd sql && printf '%s\n' {postgres,mysql,sqlite}/{,*/}*.sql) | grep -vE '/(grants|interrupted|rowlock_[a-z0-9_]+)\.sql$' |
        awk -F / -v wanted=" $*" '{ file = substr($0, length($1) + 2); have[file] = have[file] " " $1 }
            END { for (file in have) if (have[file] == wanted) { sub(/.*\//, "", file); sub(/\.sql/, "", file); print file } }' |
        sort | xargs
}
# sql/README.md says what the other dialects do instead.
ok "there are steps of all dialects" test -n "$(only postgres mysql sqlite)"
is "the steps of postgres alone" "$(only postgres)" "acquire_met acquire_usual acquire_usual_many listen once_prove"
is "the steps of mysql alone" "$(only mysql)" \
    "await events may_remake renew_all_usual renew_usual routines rows_marked still_held_many sweep_keys"
is "the steps of sqlite alone" "$(only sqlite)" "look row_lock sweep_end"
is "the steps of the servers" "$(only postgres mysql)" \
    "acquire_all acquire_many blockers enqueue_many release_many remake renew_many rows_find rows_insert rows_read rows_remove rows_update"
is "the steps of mysql and sqlite" "$(only mysql sqlite)" "still_held wake"
is "the steps of postgres and sqlite" "$(only postgres sqlite)" "sweep sweep_quiet"

# The first line that is no comment is what a DBA sees in the process list.
unnamed=$(awk 'function told() { if (before !~ /\/(grants|clock|interrupted|tables|rowlock_[a-z0-9_]*)\.sql$/ && !named) print before }
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
    for list in "schema.sql {$name}" "drop.sql EXISTS ${name}[(;]" "grants.sql ${name}[, ;]"; do
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
