-- Deletes those of many rows that have their expected versions.
--
-- {arrays}: a key and a version for each row, in the order of keys
-- rows: number of a row that was deleted, the version it had

/* rowlock:rows_remove */
DELETE FROM {table} AS t
 USING unnest({arrays}, NULL::integer[]) WITH ORDINALITY AS v ({names}, rlk_none, rlk_n)
 WHERE {match} AND t.{version} OPERATOR(pg_catalog.=) v.rlk_ver
RETURNING v.rlk_n, t.{version}
