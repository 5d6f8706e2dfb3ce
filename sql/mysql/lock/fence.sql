-- Let a resource see a token, unless it has seen a newer one.
--
-- {resource}  {token}
-- columns: 1 accepted, 0 stale
--
-- Atomic: the procedure upserts one row by its key and looks at what it holds then. The
-- row stays locked until the transaction ends, so that what is written after it in the same
-- transaction is written in the order of the tokens.

/* rowlock:fence */
CALL rowlock_fence({resource}, {token})
