-- Finds the versions of many rows. It has three uses:
-- - it explains which rows could not be changed
-- - it checks rows that must not change
-- - it locks rows in the order of their keys before a change
--
-- {arrays}: a key and a version for each row  {lock}: against changes by others, or for a change of
-- ours
-- rows: number of a row that is there, its version, NULL, its number. Nothing is marked here.

/* rowlock:rows_find */
SELECT v.rlk_n, t.{version}, NULL, v.rlk_n
  FROM unnest({arrays}, NULL::integer[]) WITH ORDINALITY AS v ({names}, rlk_none, rlk_n)
      JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n {lock:FOR SHARE OF t|FOR NO KEY UPDATE OF t}
