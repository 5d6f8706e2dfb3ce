-- Which versions many rows have: of those that could not be changed, and of those that shall stay
-- as they are.
--
-- {tag} {pack}: a key and a version for each row  {lock: to keep them as they are, to change them}
-- rows: number of each row, its version or NULL if it is not there, what rows_marked says (in the
-- first row only), and
--       the number of the first of those given that are the same row to the database
--
-- With a lock, or where it is the first read of its transaction, it sees the newest state at any
-- isolation. Keys that the database takes for equal are all marked by the statement that changed
-- their row once: it did so for the first. The limit is none: without one, that of the session
-- would hold (sql_select_limit).
-- MySQL wants the JSON table out of the locking clause's sight.

/* rowlock:rows_find */
SELECT v.rlk_n, t.{version},
       IF(v.rlk_n = 1 AND CAST(LEFT(@rlk_rows, 16) AS BINARY) = CAST({tag} AS BINARY),
          CAST(SUBSTRING(@rlk_rows, 17) AS BINARY), NULL),
       MIN(v.rlk_n) OVER (PARTITION BY {order})
  FROM (SELECT * FROM JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                                 COLUMNS (rlk_n FOR ORDINALITY{paths})) AS j) AS v
  LEFT JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n LIMIT 18446744073709551615 {lock:LOCK IN SHARE MODE|FOR UPDATE}
