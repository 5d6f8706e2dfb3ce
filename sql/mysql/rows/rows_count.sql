-- Counts the rows ahead of a walk, up to a limit.
--
-- {after} the key to begin behind, empty: from the beginning  {limit}
-- row: the number

/* rowlock:rows_count */
SELECT COUNT(*) FROM (SELECT 1 AS one FROM {table} AS t {after} LIMIT {limit}) AS c
