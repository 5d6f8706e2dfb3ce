-- Read one row: its key, its columns, its version.
--
-- {match}; {lock: to keep it as it is, to change it}
-- row: as it is now; none: it is not there

/* rowlock:row_read */
SELECT {shown}t.{version} FROM {table} AS t WHERE {match} {lock:FOR SHARE|FOR NO KEY UPDATE}
