-- Which versions many rows have: of those that could not be changed, and of those that shall stay as they are.
--
-- {tag} {pack}: a key and a version for each row  {lock: to keep them as they are, to change them}
-- rows: number of each row, its version or NULL if it is not there, whether the statement with this tag marked it as
--       changed, and the how manieth it is of those that were so marked for one row
--
-- With a lock, or where it is the first read of its transaction, it sees the newest state at any isolation. Keys that
-- the database takes for equal are all marked by the statement that changed their row once: it did so for the first.
-- The limit is none: without one, that of the session would hold (sql_select_limit). Tags are compared as bytes: before
-- its first value the variable has whatever collation the session has.
-- MySQL wants the JSON table out of the locking clause's sight.

/* rowlock:rows_find */
SELECT v.rlk_n, t.{version},
       IF(CAST(LEFT(@rlk_rows, 16) AS BINARY) = CAST({tag} AS BINARY), FIND_IN_SET(v.rlk_n, @rlk_rows) > 0 AND FIND_IN_SET(-v.rlk_n, @rlk_rows) = 0, 0),
       ROW_NUMBER() OVER (PARTITION BY {order}, FIND_IN_SET(v.rlk_n, @rlk_rows) > 0 ORDER BY v.rlk_n)
  FROM (SELECT * FROM JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]' COLUMNS (rlk_n FOR ORDINALITY{paths})) AS j) AS v
  LEFT JOIN {table} AS t ON {match}
 ORDER BY v.rlk_n LIMIT 18446744073709551615 {lock:LOCK IN SHARE MODE|FOR UPDATE}
