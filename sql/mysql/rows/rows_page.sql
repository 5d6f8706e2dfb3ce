-- Reads the next rows of a table in the order of its key.
--
-- {after} the key to begin behind, empty: from the beginning  {limit}
-- rows: key, columns, version
--
-- A plain read by the key's index. It does not read earlier rows again.

/* rowlock:rows_page */
SELECT {shown}t.{version} FROM {table} AS t {after}
 ORDER BY {order} LIMIT {limit}
