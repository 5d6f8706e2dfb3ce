-- Let a resource see a token, unless it has seen a newer one.
--
-- {resource}  {token}
-- rows changed: 1 accepted, 0 stale
--
-- Atomic: one upsert of one row by its key. The row stays locked until the transaction ends, so
-- that what is written after it in the same transaction is written in the order of the tokens.

/* rowlock:fence */
INSERT INTO rowlock_fences AS f (resource, token, seen)
VALUES ({resource}::text, {token}::bigint, {clock})
ON CONFLICT (resource) DO UPDATE SET token = excluded.token, seen = excluded.seen
 WHERE f.token <= excluded.token
