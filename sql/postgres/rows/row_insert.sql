-- Inserts one row, if there is none with its key.
--
-- {given} {first}
-- row: its version. No row: the key is there.
--
-- One statement. It waits for another transaction's insert of the same key.

/* rowlock:row_insert */
INSERT INTO {table} AS t ({columns}{version}) VALUES ({given}{first})
ON CONFLICT ({key}) DO NOTHING
RETURNING t.{version}
