-- Deletes those of many rows that have their expected versions.
--
-- {pack}: a key and a version for each row, in the order of keys  {tag}
-- rows changed; see rows_update
--
-- One statement. CASE checks the row's key and version before it marks the row. The row is locked
-- by then. If the server scans a small table, it may evaluate CASE before ON.

/* rowlock:rows_remove */
DELETE t FROM (SELECT @rlk_rows := {tag}) AS rlk_begin
    STRAIGHT_JOIN JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                             COLUMNS (rlk_n FOR ORDINALITY{paths})) AS v
                             STRAIGHT_JOIN {table} AS t ON {match}
 WHERE CASE WHEN {match} AND t.{version} = v.rlk_ver
            THEN (@rlk_rows := CONCAT(@rlk_rows, ',', v.rlk_n)) IS NOT NULL
            ELSE FALSE END
