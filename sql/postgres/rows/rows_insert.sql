-- Make those of many rows whose keys are not there yet.
--
-- {arrays}: a key and values for each row, in the order of keys  {first}
-- rows: 0 and how many were made. If that is not all of them, or a trigger chose their versions:
-- also the number of
--       each row that was made under its key, and its version.
--       A trigger may give rows other keys: they are counted only
--
-- One statement; waits for others' inserts of the same keys. Of keys that the database takes for
-- equal the first has made the row. Keys given and keys made are brought together by grouping, not
-- by a join: sessions of our own plan joins as nested loops, whose time grows with the square of
-- the rows.

/* rowlock:rows_insert */
WITH v AS (SELECT * FROM unnest({arrays}, NULL::integer[])
           WITH ORDINALITY AS v ({names}, rlk_none, rlk_n)),
     made AS (INSERT INTO {table} ({columns}{version}) SELECT {given}{first} FROM v ORDER BY rlk_n
              ON CONFLICT ({key}) DO NOTHING RETURNING {key}, {version}),
     total AS (SELECT pg_catalog.count(*) AS rows,
                      pg_catalog.count(*) = (SELECT pg_catalog.count(*) FROM v)
                      AND pg_catalog.bool_and({version} OPERATOR(pg_catalog.=) {first}) AS plain
                 FROM made)
SELECT 0, rows FROM total
UNION ALL
(SELECT pg_catalog.min(t.rlk_n), pg_catalog.max(t.rlk_made)
   FROM (SELECT {keys}, v.rlk_n, NULL::bigint FROM v
         UNION ALL SELECT {key}, NULL, {version} FROM made) AS t ({key}, rlk_n, rlk_made)
  WHERE NOT (SELECT plain FROM total)
  GROUP BY {order} HAVING pg_catalog.count(t.rlk_made) > 0 AND pg_catalog.count(t.rlk_n) > 0)
