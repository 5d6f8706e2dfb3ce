-- Inserts those of many rows whose keys are not there yet.
--
-- {given} {tag} {first} {pack}: a key and values for each row, in the order of keys
-- rows changed: of no use, because with CLIENT_FOUND_ROWS an existing row counts too. rows_marked
-- tells.
--
-- One statement. It notes the number of each row that it left out, behind the tag. Such a row has a
-- key or another unique key that is there already, and core finds out which. Two other ways do not
-- work:
-- - INSERT IGNORE accepts wrong values.
-- - After a look at the same table the server would keep the rows in a temporary table. MariaDB
--   10.11 loses texts there that came out of UNHEX.

/* rowlock:rows_insert */
INSERT INTO {table} ({columns}{version})
SELECT {given}{first}
  FROM (SELECT @rlk_rows := {tag}) AS rlk_begin
      STRAIGHT_JOIN JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]'
                               COLUMNS (rlk_n FOR ORDINALITY{paths})) AS v
 WHERE TRUE
    ON DUPLICATE KEY UPDATE {version} = IF((@rlk_rows := CONCAT(@rlk_rows, ',', v.rlk_n)) IS NULL,
                                           0, {table}.{version})
