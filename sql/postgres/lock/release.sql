-- Releases the lock, if this owner and token hold it.
--
-- {name}  {slot}  {owner}  {token}
-- columns: one row if it was released. No row: lost. The first in the queue is woken.
--
-- Atomic: one DELETE of one row by its key. The row is marked as deleted before rowlock_wake()
-- looks for waiters. The token row stays, with the highest token.

/* rowlock:release */
DELETE FROM rowlock_locks
 WHERE name = {name}::text AND slot = {slot}::bigint AND owner = {owner}::text
       AND token = {token}::bigint
RETURNING rowlock_wake(name) IS NOT NULL
