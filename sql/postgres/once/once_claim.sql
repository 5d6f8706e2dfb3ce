-- Claims a key: makes its row, or takes it over.
--
-- {key}  {fingerprint}  {claim}
-- {ttl} how long the work may take, in microseconds
-- {token} of the claimer's lock, 0: none
-- no answer: once_look reads what became of the claim
--
-- The key is taken over if it is not completed, and one of these holds:
-- - its time is over, and its fingerprint is the same
-- - it was claimed under a smaller token, and its fingerprint is the same
-- - it was given back (claim 0), and its fingerprint is another
-- In all other cases the row stays as it is.
--
-- Atomic: one upsert of one row by its key. The same claim may be sent again.

/* rowlock:once_claim */
INSERT INTO rowlock_once AS o (name, fingerprint, claim, token, expires, done, changed)
SELECT {key}::text, {fingerprint}::text, {claim}::bigint, {token}::bigint, n.now + {ttl}::bigint,
       false, n.now FROM (SELECT {clock} AS now) AS n
ON CONFLICT (name) DO UPDATE SET claim = excluded.claim, token = excluded.token,
    fingerprint = excluded.fingerprint, expires = excluded.expires, changed = excluded.changed
 WHERE NOT o.done AND CASE WHEN o.fingerprint = excluded.fingerprint
       THEN o.expires <= excluded.changed OR (o.token > 0 AND o.token < excluded.token)
       ELSE o.claim = 0 END
