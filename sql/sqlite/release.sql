-- Give the lock back, if this owner and token still hold it.
--
-- ?1 name  ?2 slot  ?3 owner  ?4 token
-- rows deleted: 1 released, 0 lost
--
-- Atomic: one DELETE of one row by its key. The token row stays, and with it the highest token.

/* rowlock:release */
DELETE FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND owner = ?3 AND token = ?4
