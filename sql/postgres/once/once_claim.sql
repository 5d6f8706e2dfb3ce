-- Claim a key: made anew, or taken over if nobody completed it and its time is over, or it was made
-- under a smaller token. What is done, in progress, or claimed for something else stays as it is.
--
-- {key}  {fingerprint}  {claim}  {ttl} microseconds that it may take  {token} of the claimer's
-- lock, 0: none once_look says what came of it
--
-- Atomic: one upsert of one row by its key. With the same claim it says the same when it is sent
-- again.

/* rowlock:once_claim */
INSERT INTO rowlock_once AS o (name, fingerprint, claim, token, expires, done, changed)
SELECT {key}::text, {fingerprint}::text, {claim}::bigint, {token}::bigint, n.now + {ttl}::bigint,
       false, n.now FROM (SELECT {clock} AS now) AS n
ON CONFLICT (name) DO UPDATE SET claim = excluded.claim, token = excluded.token,
    expires = excluded.expires, changed = excluded.changed
 WHERE NOT o.done AND o.fingerprint = excluded.fingerprint
       AND (o.expires <= excluded.changed OR (o.token > 0 AND o.token < excluded.token))
