-- Make those of many rows whose keys are not there yet.
--
-- {arrays}: a key and values for each row, in the order of keys  {first}
-- rows: 0 and how many were made; then the number of each row that was made under its key, and its version. A trigger
--       may give rows other keys: they are counted only
--
-- One statement; waits for others' inserts of the same keys. Of keys that the database takes for equal the first
-- has made the row.

/* rowlock:rows_insert */
WITH v AS (SELECT * FROM unnest({arrays}) WITH ORDINALITY AS v ({names}, rlk_n)),
     t AS (INSERT INTO {table} ({columns}{version}) SELECT {given}{first} FROM v ORDER BY rlk_n
           ON CONFLICT ({key}) DO NOTHING RETURNING {key}, {version})
SELECT 0, count(*) FROM t
UNION ALL
(SELECT DISTINCT ON ({order}) v.rlk_n, t.{version} FROM v JOIN t ON {match} ORDER BY {order}, v.rlk_n)
