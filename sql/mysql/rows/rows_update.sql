-- Changes those of many rows that have their expected versions, and moves their versions on.
--
-- {tag} {pack}: a key, a version and values for each row, in the order of keys
-- rows changed. If they are fewer than the rows given, rows_find tells which were changed. It reads
-- the session's variable @rlk_rows, which has the numbers of the changed rows behind the tag of
-- this statement.
--
-- The statement itself begins the list, for two reasons:
-- - In MariaDB a variable that the session has not assigned before is NULL throughout the
--   statement.
-- - Marks stay if the statement is undone and sent again.
--
-- One statement. It goes through the given rows in their order, and finds and locks each by its
-- key. It always changes the version. So rows changed equals rows found, with or without
-- CLIENT_FOUND_ROWS.

/* rowlock:rows_update */
UPDATE (SELECT @rlk_rows := {tag}) AS rlk_begin
    STRAIGHT_JOIN JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                             COLUMNS (rlk_n FOR ORDINALITY{paths})) AS v
                             STRAIGHT_JOIN {table} AS t ON {match}
   SET {set}t.{version} = IF((@rlk_rows := CONCAT(@rlk_rows, ',', v.rlk_n)) IS NULL,
                             0, t.{version} + 1)
 WHERE t.{version} = v.rlk_ver
