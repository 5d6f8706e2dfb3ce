-- Releases the lock, if this owner and token hold it.
--
-- {name}  {slot}  {owner}  {token}
-- rows deleted: 1 released, 0 lost
--
-- Atomic: one DELETE of one row by its key. The token row stays, with the highest token.

/* rowlock:release */
DELETE FROM rowlock_locks WHERE name = {name} AND slot = {slot} AND owner = {owner}
    AND token = {token}
