-- Remove the grant that one attempt made, if it made one: its answer was lost.
--
-- ? name  ? slot  ? owner  ? attempt
-- rows deleted: 1 there was one, 0 there is none
--
-- Atomic: one DELETE of one row by its key.

/* rowlock:withdraw */
DELETE FROM rowlock_locks WHERE name = ? AND slot = ? AND owner = ? AND attempt = ?
