-- Changes one row that has the expected version, and moves the version on.
--
-- {set} {match} {expected}
-- row: the new version. No row: it has another version, or is not there.
--
-- One statement. After a wait for another transaction's change it checks the condition again.

/* rowlock:row_update */
UPDATE {table} AS t SET {set}{version} = t.{version} OPERATOR(pg_catalog.+) 1
 WHERE {match} AND t.{version} OPERATOR(pg_catalog.=) {expected}
RETURNING t.{version}
