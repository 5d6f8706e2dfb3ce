-- Change one row that has the expected version, and move it to the next.
--
-- {set} {match} {expected}
-- rows changed: 1, or 0: it has another version, or is not there
--
-- One statement, and the version always changes: so the number of rows found is that of rows
-- changed, be CLIENT_FOUND_ROWS set or not.

/* rowlock:row_update */
UPDATE {table} AS t SET {set}t.{version} = t.{version} + 1
 WHERE {match} AND t.{version} = {expected}
