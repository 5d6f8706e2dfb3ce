-- Claim a key: made anew, or taken over if nobody completed it and its time is over, or it was made under a
-- smaller token. What is done, in progress, or claimed for something else stays as it is.
--
-- ?1 key  ?2 fingerprint  ?3 attempt  ?4 microseconds that it may take  ?5 token of the claimer's lock, 0: none
-- once_look says what came of it
--
-- Atomic: one upsert of one row by its key. With the same attempt it says the same when it is sent again.

/* rowlock:once_claim */
INSERT INTO rowlock_once AS o (name, fingerprint, attempt, token, expires, done, changed)
SELECT ?1, ?2, ?3, ?5, n.now + ?4, 0, n.now FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now) AS n WHERE true
ON CONFLICT (name) DO UPDATE SET attempt = excluded.attempt, token = excluded.token, expires = excluded.expires, changed = excluded.changed
 WHERE NOT o.done AND o.fingerprint = excluded.fingerprint AND (o.expires <= excluded.changed OR (o.token > 0 AND o.token < excluded.token))
