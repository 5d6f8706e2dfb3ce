-- Make those of many rows whose keys are not there yet.
--
-- {arrays}: a key and values for each row, in the order of keys  {first}
-- rows: number of a row that was made, its version
--
-- One statement; waits for others' inserts of the same keys. Of keys that the database takes for equal the first
-- has made the row.

/* rowlock:rows_insert */
WITH v AS (SELECT * FROM unnest({arrays}) WITH ORDINALITY AS v ({names}, rlk_n)),
     t AS (INSERT INTO {table} ({columns}{version}) SELECT {given}{first} FROM v ORDER BY rlk_n
           ON CONFLICT ({key}) DO NOTHING RETURNING {key}, {version})
SELECT DISTINCT ON ({order}) v.rlk_n, t.{version} FROM v JOIN t ON {match} ORDER BY {order}, v.rlk_n
