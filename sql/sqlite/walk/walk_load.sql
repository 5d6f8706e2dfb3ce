-- How far a walk has come.
--
-- {name}
-- row: step, position, pending, rows walked by, written, left, conflicts, failed; none: it has not
-- begun
--
-- A plain read, in a transaction that has the file to itself.

/* rowlock:walk_load */
SELECT step, position, pending, walked, written, untouched, conflicts, failed FROM rowlock_walks
 WHERE name = {name}
