-- Give the lock back, if this owner and token still hold it.
--
-- {name}  {slot}  {owner}  {token}
-- columns: one row if it was released; no row: lost. The first in line is woken for.
--
-- Atomic: one DELETE of one row by its key, which is marked as deleted before rowlock_wake() looks
-- who waits. The token row stays, and with it the highest token.

/* rowlock:release */
DELETE FROM rowlock_locks
 WHERE name = {name}::text AND slot = {slot}::bigint AND owner = {owner}::text
       AND token = {token}::bigint
RETURNING rowlock_wake(name) IS NOT NULL
