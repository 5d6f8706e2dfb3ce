-- Shows a token to a resource. The resource refuses it if it has seen a newer one.
--
-- {resource}  {token}
-- rows changed: 1 accepted, 0 stale
--
-- Atomic: one upsert of one row by its key. The file stays locked until the transaction ends.

/* rowlock:fence */
INSERT INTO rowlock_fences AS f (resource, token, seen)
VALUES ({resource}, {token}, {clock})
ON CONFLICT (resource) DO UPDATE SET token = excluded.token, seen = excluded.seen
 WHERE f.token <= excluded.token
