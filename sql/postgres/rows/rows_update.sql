-- Change those of many rows that have their expected versions, and move each to the next.
--
-- {arrays}: a key, a version and values for each row, in the order of keys
-- rows: number of a row that was changed, its new version
--
-- One statement. What was not changed is asked for by rows_find: in this statement it would look as
-- it did when that began. Rows are locked in the order of the arrays where the plan is a nested
-- loop over them, as it is on sessions of our own but for tables that are all but empty; a deadlock
-- is sent again there. Inside the caller's transaction, where it could not be, rows_find locks the
-- rows first.

/* rowlock:rows_update */
UPDATE {table} AS t SET {set}{version} = t.{version} OPERATOR(pg_catalog.+) 1
  FROM unnest({arrays}, NULL::integer[]) WITH ORDINALITY AS v ({names}, rlk_none, rlk_n)
 WHERE {match} AND t.{version} OPERATOR(pg_catalog.=) v.rlk_ver
RETURNING v.rlk_n, t.{version}
