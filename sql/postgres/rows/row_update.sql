-- Change one row that has the expected version, and move it to the next.
--
-- {set} {match} {expected}
-- row: the new version; none: it has another one, or is not there
--
-- One statement: after a wait for another's change the condition is looked at again.

/* rowlock:row_update */
UPDATE {table} AS t SET {set}{version} = t.{version} OPERATOR(pg_catalog.+) 1
 WHERE {match} AND t.{version} OPERATOR(pg_catalog.=) {expected}
RETURNING t.{version}
