-- Read many rows: their columns and versions.
--
-- {pack}: a key for each row  {lock: to keep them as they are, to change them}
-- rows: number of a row that is there, its key, its columns, its version
--
-- STRAIGHT_JOIN: rows are met, and locked, in the order in which their keys were given. The limit
-- is none: without one, that of the session would hold (sql_select_limit).

/* rowlock:rows_read */
SELECT v.rlk_n, {shown}t.{version}
  FROM (SELECT * FROM JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                                 COLUMNS (rlk_n FOR ORDINALITY{paths})) AS j) AS v
       STRAIGHT_JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n LIMIT 18446744073709551615 {lock:LOCK IN SHARE MODE|FOR UPDATE}
