-- Reads many rows: their columns and versions.
--
-- {pack}: a key for each row  {lock}: shared, or before a change
-- rows: number of a row that is there, its key, its columns, its version
--
-- STRAIGHT_JOIN finds and locks the rows in the order of the given keys. The LIMIT is high enough
-- for all rows: without it, sql_select_limit of the session would hold.

/* rowlock:rows_read */
SELECT v.rlk_n, {shown}t.{version}
  FROM (SELECT * FROM JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                                 COLUMNS (rlk_n FOR ORDINALITY{paths})) AS j) AS v
       STRAIGHT_JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n LIMIT 18446744073709551615 {lock:LOCK IN SHARE MODE|FOR UPDATE}
