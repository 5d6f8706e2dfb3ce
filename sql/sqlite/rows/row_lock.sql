-- Keeps other clients from changing rows of the table until the transaction ends.
--
-- rows changed: none
--
-- A statement that writes makes the transaction the only writer of its file, even if it finds no
-- row. It fails if another transaction is the writer, or has written after this one's snapshot.

/* rowlock:row_lock */
UPDATE {table} SET {version} = {version} WHERE FALSE
