-- Keep others from changing rows of the table until the transaction ends.
--
-- rows changed: none
--
-- A statement that writes makes the transaction the one writer of its file, also if it finds no row
-- to write. It fails if another transaction is that writer, or has written after the snapshot of
-- this one.

/* rowlock:row_lock */
UPDATE {table} SET {version} = {version} WHERE FALSE
