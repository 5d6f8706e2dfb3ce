-- Change those of many rows that have their expected versions, and move each to the next.
--
-- {tag} {pack}: a key, a version and values for each row, in the order of keys
-- rows changed. When they are fewer than were given, rows_find tells which, by the session's
-- variable that keeps the numbers of those that were changed, behind the tag of this very statement
--
-- The list begins anew with the statement, within it: MariaDB takes a variable that the session has
-- not assigned before for NULL throughout; and what a statement marks stays marked when it is
-- undone, and sent again.
--
-- One statement: the rows given are gone through in their order, each is found by its key and
-- locked. The version always changes, so the number of rows found is that of rows changed, be
-- CLIENT_FOUND_ROWS set or not.

/* rowlock:rows_update */
UPDATE (SELECT @rlk_rows := {tag}) AS rlk_begin
    STRAIGHT_JOIN JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                             COLUMNS (rlk_n FOR ORDINALITY{paths})) AS v
                             STRAIGHT_JOIN {table} AS t ON {match}
   SET {set}t.{version} = IF((@rlk_rows := CONCAT(@rlk_rows, ',', v.rlk_n)) IS NULL,
                             0, t.{version} + 1)
 WHERE t.{version} = v.rlk_ver
