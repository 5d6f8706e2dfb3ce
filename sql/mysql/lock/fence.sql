-- Shows a token to a resource. The resource refuses it if it has seen a newer one.
--
-- {resource}  {token}
-- columns: 1 accepted, 0 stale
--
-- Atomic: the procedure upserts one row by its key, and reads it back. The row stays locked until
-- the transaction ends. So what the same transaction writes next is written in the order of the
-- tokens.

/* rowlock:fence */
CALL rowlock_fence({resource}, {token})
