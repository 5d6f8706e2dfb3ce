-- Make those of many rows whose keys are not there yet.
--
-- {given} {tag} {first} {pack}: a key and values for each row, in the order of keys
-- rows changed say nothing: with CLIENT_FOUND_ROWS one that was there counts too. rows_marked tells
--
-- One statement. The number of each row that was not made is noted behind the tag. Such a row has a
-- key that is there already, or another unique key that is: core looks which. Not INSERT IGNORE,
-- which
-- lets wrong values in; nor a look at the same table beforehand, for which the server would keep
-- the rows in a temporary table, where MariaDB 10.11 loses texts that came out of UNHEX.

/* rowlock:rows_insert */
INSERT INTO {table} ({columns}{version})
SELECT {given}{first}
  FROM (SELECT @rlk_rows := {tag}) AS rlk_begin
      STRAIGHT_JOIN JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                               COLUMNS (rlk_n FOR ORDINALITY{paths})) AS v
 WHERE TRUE
    ON DUPLICATE KEY UPDATE {version} = IF((@rlk_rows := CONCAT(@rlk_rows, ',', v.rlk_n)) IS NULL,
                                           0, {table}.{version})
