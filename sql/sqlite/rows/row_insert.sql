-- Inserts one row, if there is none with its key.
--
-- {given} {first}
-- rows changed: 1, or 0 if the key is there
--
-- One statement.

/* rowlock:row_insert */
INSERT INTO {table} AS t ({columns}{version}) VALUES ({given}{first})
ON CONFLICT ({key}) DO NOTHING
