-- Remove the grant that one attempt made, if it made one: its answer was lost.
--
-- ?1 name  ?2 slot  ?3 owner  ?4 attempt
-- rows deleted: 1 there was one, 0 there is none
--
-- Atomic: one DELETE of one row by its key.

/* rowlock:withdraw */
DELETE FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND owner = ?3 AND attempt = ?4
