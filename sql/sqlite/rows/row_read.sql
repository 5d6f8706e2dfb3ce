-- Reads one row: its key, its columns, its version.
--
-- {match}
-- row: its newest state. No row: it is not there.

/* rowlock:row_read */
SELECT {shown}t.{version} FROM {table} AS t WHERE {match}
