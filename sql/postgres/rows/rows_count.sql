-- How many rows lie ahead, as far as it is worth counting.
--
-- {after}: behind this key, or from the beginning  {limit}
-- row: their number

/* rowlock:rows_count */
SELECT pg_catalog.count(*) FROM (SELECT 1 AS one FROM {table} AS t {after} LIMIT {limit}) AS c
