-- Inserts those of many rows whose keys are not there yet.
--
-- {arrays}: a key and values for each row, in the order of keys  {first}
-- rows:
-- - 0, and how many rows were inserted
-- - number and version of each row that was inserted under its key
-- The other rows come only if some rows were not inserted, or a trigger chose a version. A row that
-- got another key from a trigger is only counted.
--
-- One statement. It waits for other transactions' inserts of the same keys. If several keys are
-- equal to the database, the first has made the row. Grouping brings the given keys and the
-- inserted keys together. A join would be a nested loop in our own sessions, whose time grows with
-- the square of the rows.

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
