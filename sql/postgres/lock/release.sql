-- Releases the lock, if this owner and token hold it.
--
-- {name}  {slot}  {owner}  {token}  {joins}: part of the caller's transaction
-- columns: one row if it was released. No row: lost. The first in the queue is woken.
--
-- Atomic: one DELETE of one row by its key. The row is marked as deleted before rowlock_wake()
-- looks for waiters. The token row stays, with the highest token.
--
-- A release of a short lease does not wait for the disk. If the server crashes a moment later, the
-- lock stands until its lease is over, a minute at most. The next grant waits for the disk, and the
-- log keeps the order. So no grant is there without the releases before it. Where commits wait for
-- a standby, releases do too: after a failover no lock stands that was released.

/* rowlock:release */
DELETE FROM rowlock_locks
 WHERE name = {name}::text AND slot = {slot}::bigint AND owner = {owner}::text
       AND token = {token}::bigint
RETURNING rowlock_wake(name)
          AND ({joins}::boolean OR ttl > 60000000 OR rowlock_relax())
