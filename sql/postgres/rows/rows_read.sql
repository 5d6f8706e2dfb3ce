-- Reads many rows: their columns and versions.
--
-- {arrays}: a key for each row  {lock}: shared, or before a change
-- rows: number of a row that is there, its key, its columns, its version
--
-- With a lock it locks the rows in the order of the given keys.

/* rowlock:rows_read */
SELECT v.rlk_n, {shown}t.{version}
  FROM unnest({arrays}, NULL::integer[]) WITH ORDINALITY AS v ({names}, rlk_none, rlk_n)
      JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n {lock:FOR SHARE OF t|FOR NO KEY UPDATE OF t}
