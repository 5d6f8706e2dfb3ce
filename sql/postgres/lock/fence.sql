-- Shows a token to a resource. The resource refuses it if it has seen a newer one.
--
-- {resource}  {token}
-- rows changed: 1 accepted, 0 stale
--
-- Atomic: one upsert of one row by its key. The row stays locked until the transaction ends. So
-- what the same transaction writes next is written in the order of the tokens.

/* rowlock:fence */
INSERT INTO rowlock_fences AS f (resource, token, seen)
VALUES ({resource}::text, {token}::bigint, {clock})
ON CONFLICT (resource) DO UPDATE SET token = excluded.token, seen = excluded.seen
 WHERE f.token <= excluded.token
