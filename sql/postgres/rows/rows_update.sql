-- Changes those of many rows that have their expected versions, and moves their versions on.
--
-- {arrays}: a key, a version and values for each row, in the order of keys
-- rows: number of a row that was changed, its new version
--
-- One statement. rows_find explains the rows that were not changed. In this statement they would
-- look as they did when it began.
--
-- The plan decides the order of row locks. It is the order of the arrays if the plan is a nested
-- loop over them. In our own sessions it is, except for tables that are almost empty. A deadlock is
-- sent again there. Inside the caller's transaction that is not possible, so rows_find locks the
-- rows first.

/* rowlock:rows_update */
UPDATE {table} AS t SET {set}{version} = t.{version} OPERATOR(pg_catalog.+) 1
  FROM unnest({arrays}, NULL::integer[]) WITH ORDINALITY AS v ({names}, rlk_none, rlk_n)
 WHERE {match} AND t.{version} OPERATOR(pg_catalog.=) v.rlk_ver
RETURNING v.rlk_n, t.{version}
