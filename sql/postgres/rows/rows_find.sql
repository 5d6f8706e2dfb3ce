-- Which versions many rows have: of those that could not be changed, of those that shall stay as
-- they are, and to lock those that will be changed in the order of their keys.
--
-- {arrays}: a key and a version for each row  {lock: to keep them as they are, to change them}
-- rows: number of a row that is there, its version, NULL, its number: nothing is marked here

/* rowlock:rows_find */
SELECT v.rlk_n, t.{version}, NULL, v.rlk_n
  FROM unnest({arrays}, NULL::integer[]) WITH ORDINALITY AS v ({names}, rlk_none, rlk_n)
      JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n {lock:FOR SHARE OF t|FOR NO KEY UPDATE OF t}
