-- Reads the checkpoint of a walk.
--
-- {name}
-- row: step, position, pending, rows walked by, written, left, conflicts, failed. No row: no
-- checkpoint.
--
-- A plain read. The transaction around it is the only writer of the file.

/* rowlock:walk_load */
SELECT step, position, pending, walked, written, untouched, conflicts, failed FROM rowlock_walks
 WHERE name = {name}
