-- Make one row, if there is none with its key.
--
-- {given} {first} {match}
-- rows changed: 1, or 0: there is one
--
-- One statement. Of two at the same time the second may meet the first's row as a duplicate key all
-- the same, which is an error: core looks again then.

/* rowlock:row_insert */
INSERT INTO {table} ({columns}{version})
SELECT {given}{first} FROM (SELECT 1 AS rlk_one) AS o
 WHERE NOT EXISTS (SELECT 1 FROM {table} AS t WHERE {match})
