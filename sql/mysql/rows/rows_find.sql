-- Finds the versions of many rows. It explains which rows could not be changed, and checks rows
-- that must not change.
--
-- {tag} {pack}: a key and a version for each row  {lock}: shared, or before a change
-- rows:
-- - number of the row
-- - its version, NULL: it is not there
-- - what rows_marked says, in the first row only
-- - the number of the first key in the pack that is the same row to the database
--
-- With a lock, or as the first read of its transaction, it sees the newest state at any isolation
-- level. If several keys are the same row to the database, the statement that changed the row once
-- has marked all of them. It changed the row for the first. The LIMIT is high enough for all rows:
-- without it, sql_select_limit of the session would hold. MySQL wants the JSON table out of reach
-- of the locking clause.

/* rowlock:rows_find */
SELECT v.rlk_n, t.{version},
       IF(v.rlk_n = 1 AND CAST(LEFT(@rlk_rows, 16) AS BINARY) = CAST({tag} AS BINARY),
          CAST(SUBSTRING(@rlk_rows, 17) AS BINARY), NULL),
       MIN(v.rlk_n) OVER (PARTITION BY {order})
  FROM (SELECT * FROM JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                                 COLUMNS (rlk_n FOR ORDINALITY{paths})) AS j) AS v
  LEFT JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n LIMIT 18446744073709551615 {lock:LOCK IN SHARE MODE|FOR UPDATE}
