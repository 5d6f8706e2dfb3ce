-- Delete those of many rows that have their expected versions.
--
-- {pack}: a key and a version for each row, in the order of keys  {tag}
-- rows changed; see rows_update
--
-- One statement. CASE looks at the row's key and version, which are locked by then, before it marks
-- the row: where a small table is scanned, the server may come to it before ON.

/* rowlock:rows_remove */
DELETE t FROM (SELECT @rlk_rows := {tag}) AS rlk_begin
    STRAIGHT_JOIN JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                             COLUMNS (rlk_n FOR ORDINALITY{paths})) AS v
                             STRAIGHT_JOIN {table} AS t ON {match}
 WHERE CASE WHEN {match} AND t.{version} = v.rlk_ver
            THEN (@rlk_rows := CONCAT(@rlk_rows, ',', v.rlk_n)) IS NOT NULL
            ELSE FALSE END
