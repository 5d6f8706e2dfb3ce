-- Deletes one row that has the expected version.
--
-- {match} {expected}
-- row: the version it had. No row: it has another version, or is not there.

/* rowlock:row_remove */
DELETE FROM {table} AS t WHERE {match} AND t.{version} OPERATOR(pg_catalog.=) {expected}
RETURNING t.{version}
