-- The next rows of a table in the order of its key.
--
-- {after}: behind this key, or from the beginning  {limit}
-- rows: key, columns, version
--
-- A plain read, by the key's index: what lies behind is not read again.

/* rowlock:rows_page */
SELECT {shown}t.{version} FROM {table} AS t {after}
 ORDER BY {order} LIMIT {limit}
