-- Give the lock back, if this owner and token still hold it.
--
-- {name}  {slot}  {owner}  {token}
-- rows deleted: 1 released, 0 lost
--
-- Atomic: one DELETE of one row by its key. The token row stays, and with it the highest token.

/* rowlock:release */
DELETE FROM rowlock_locks WHERE name = {name} AND slot = {slot} AND owner = {owner}
    AND token = {token}
