-- Change one row that has the expected version, and move it to the next.
--
-- {set} {match} {expected}
-- rows changed: 1, or 0: it has another version, or is not there
--
-- One statement.

/* rowlock:row_update */
UPDATE {table} AS t SET {set}{version} = t.{version} + 1
 WHERE {match} AND t.{version} = {expected}
