-- Reads the checkpoint of a walk.
--
-- {name}
-- row: step, position, pending, rows walked by, written, left, conflicts, failed. No row: no
-- checkpoint.
--
-- Inside a transaction it locks the row. A commit of ours without an answer has then ended.

/* rowlock:walk_load */
SELECT step, position, pending, walked, written, untouched, conflicts, failed FROM rowlock_walks
 WHERE name = {name} FOR UPDATE
