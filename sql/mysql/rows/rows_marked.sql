-- Reads which rows the last statement for many rows has marked.
--
-- {tag}
-- row: the numbers of the rows, each after a comma. NULL: another statement came after the one with
-- this tag.
--
-- Reads a variable of the session, and no table. Tags are compared as bytes: before its first value
-- the variable has the collation of the session.

/* rowlock:rows_marked */
SELECT IF(CAST(LEFT(@rlk_rows, 16) AS BINARY) = CAST({tag} AS BINARY),
          CAST(SUBSTRING(@rlk_rows, 17) AS BINARY), NULL)
