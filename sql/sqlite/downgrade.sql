-- Turn our exclusive grant into one that lets others of its kind in.
--
-- ?1 name  ?2 owner  ?3 token  ?4 permits
-- rows changed by the last statement: 1 done, 0 lost
--
-- Atomic: the driver runs these two in one IMMEDIATE transaction, then rings for the first in line.

/* rowlock:downgrade */
UPDATE rowlock_tokens SET permits = ?4
 WHERE name = ?1
   AND EXISTS (SELECT 1 FROM rowlock_locks WHERE name = ?1 AND slot = 0 AND owner = ?2 AND token = ?3);

UPDATE rowlock_locks SET slot = token, permits = ?4
 WHERE name = ?1 AND slot = 0 AND owner = ?2 AND token = ?3
