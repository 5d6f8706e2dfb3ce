-- Remove the grant that one attempt made, if it made one: its answer was lost.
--
-- ?1 name  ?2 owner  ?3 attempt
-- rows deleted: 1 there was one, 0 there is none
--
-- Atomic: one DELETE. The driver then rings for the first in line.

/* rowlock:withdraw */
DELETE FROM rowlock_locks WHERE name = ?1 AND owner = ?2 AND attempt = ?3
