-- Reads one row: its key, its columns, its version.
--
-- {match}  {lock}: shared, or before a change
-- row: its newest state. No row: it is not there.

/* rowlock:row_read */
SELECT {shown}t.{version} FROM {table} AS t WHERE {match} {lock:FOR SHARE|FOR NO KEY UPDATE}
