-- Inserts one row, if there is none with its key.
--
-- {given} {first} {match}
-- rows changed: 1, or 0 if the key is there
--
-- One statement. If two run at the same time, the second may still fail as a duplicate key. Core
-- then looks at the row.

/* rowlock:row_insert */
INSERT INTO {table} ({columns}{version})
SELECT {given}{first} FROM (SELECT 1 AS rlk_one) AS o
 WHERE NOT EXISTS (SELECT 1 FROM {table} AS t WHERE {match})
