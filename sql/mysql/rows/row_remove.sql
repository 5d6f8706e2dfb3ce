-- Deletes one row that has the expected version.
--
-- {match} {expected}
-- rows changed: 1, or 0 if it has another version or is not there

/* rowlock:row_remove */
DELETE t FROM {table} AS t WHERE {match} AND t.{version} = {expected}
