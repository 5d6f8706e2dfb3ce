-- Let a resource see a token, unless it has seen a newer one.
--
-- ?1 resource  ?2 token
-- rows changed: 1 accepted, 0 stale
--
-- Atomic: one upsert of one row by its key. The file stays locked until the transaction ends.

/* rowlock:fence */
INSERT INTO rowlock_fences AS f (resource, token, seen)
VALUES (?1, ?2, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token, seen = excluded.seen
 WHERE f.token <= excluded.token
