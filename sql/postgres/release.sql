-- Give the lock back, if this owner and token still hold it.
--
-- $1 name  $2 slot  $3 owner  $4 token
-- columns: one row if it was released; no row: lost. The first in line is rung for.
--
-- Atomic: one DELETE of one row by its key, which is marked as deleted before rowlock_ring() looks who waits. The token row stays, and with it the highest token.

/* rowlock:release */
DELETE FROM rowlock_locks
 WHERE name = $1::text AND slot = $2::bigint AND owner = $3::text AND token = $4::bigint
RETURNING rowlock_ring(name)
