-- How far a walk has come.
--
-- {name}
-- row: step, position, pending, rows walked by, written, left, conflicts, failed; none: it has not
-- begun
--
-- In a transaction it locks the row: whoever was still about to save has done so by then, or never
-- will.

/* rowlock:walk_load */
SELECT step, position, pending, walked, written, untouched, conflicts, failed FROM rowlock_walks
 WHERE name = {name} FOR UPDATE
