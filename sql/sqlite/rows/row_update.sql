-- Changes one row that has the expected version, and moves the version on.
--
-- {set} {match} {expected}
-- rows changed: 1, or 0 if it has another version or is not there
--
-- One statement.

/* rowlock:row_update */
UPDATE {table} AS t SET {set}{version} = t.{version} + 1
 WHERE {match} AND t.{version} = {expected}
