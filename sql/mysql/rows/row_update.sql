-- Changes one row that has the expected version, and moves the version on.
--
-- {set} {match} {expected}
-- rows changed: 1, or 0 if it has another version or is not there
--
-- One statement. It always changes the version. So rows changed equals rows found, with or without
-- CLIENT_FOUND_ROWS.

/* rowlock:row_update */
UPDATE {table} AS t SET {set}t.{version} = t.{version} + 1
 WHERE {match} AND t.{version} = {expected}
