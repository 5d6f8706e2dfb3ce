#!/usr/bin/env bash
# The three dialects in sql/ have the same steps, each under its own name.
set -u
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# Examples of GRANT are for people, and SQLite has no GRANT. A few steps are one dialect's alone: sql/README.md.
steps() { (cd "sql/$1" && printf '%s\n' *.sql | grep -vE '^(grants|await|ring|acquire_all)\.sql$'); }

ok "there are statements" test -n "$(steps postgres)"
is "mysql has the steps of postgres" "$(steps mysql)" "$(steps postgres)"
is "sqlite has the steps of postgres" "$(steps sqlite)" "$(steps postgres)"
is "await is a statement on mysql alone" "$(echo sql/*/await.sql)" sql/mysql/await.sql
is "postgres rings in its functions" "$(echo sql/*/ring.sql)" "sql/mysql/ring.sql sql/sqlite/ring.sql"
is "acquire_all is one on the servers" "$(echo sql/*/acquire_all.sql)" "sql/mysql/acquire_all.sql sql/postgres/acquire_all.sql"

unnamed=
uncommented=
for file in sql/*/*.sql; do
    name=$(basename "$file" .sql)
    case $name in grants | drop) continue ;; esac
    # The first line that is no comment is what a DBA sees in the process list.
    first=$(grep -vE '^[[:space:]]*(--|$)|^DELIMITER' "$file" | head -n 1)
    case $first in "/* rowlock:$name */"*) ;; *) unnamed+=" $file" ;; esac
    case $(head -n 1 "$file") in --*) ;; *) uncommented+=" $file" ;; esac
done
is "each statement begins with its step's name" "$unnamed" ""
is "each file begins with a comment on its step" "$uncommented" ""

done_testing
