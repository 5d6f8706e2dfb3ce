-- Read one row: its key, its columns, its version.
--
-- {match}
-- row: as it is now; none: it is not there

/* rowlock:row_read */
SELECT {shown}t.{version} FROM {table} AS t WHERE {match}
