-- Claim a key: made anew, or taken over if nobody completed it and its time is over, or it was made under a
-- smaller token. What is done, in progress, or claimed for something else stays as it is.
--
-- $1 key  $2 fingerprint  $3 attempt  $4 microseconds that it may take  $5 token of the claimer's lock, 0: none
-- once_look says what came of it
--
-- Atomic: one upsert of one row by its key. With the same attempt it says the same when it is sent again.

/* rowlock:once_claim */
INSERT INTO rowlock_once AS o (name, fingerprint, attempt, token, expires, done, changed)
SELECT $1::text, $2::text, $3::bigint, $5::bigint, n.now + $4::bigint, false, n.now FROM (SELECT (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint AS now) AS n
ON CONFLICT (name) DO UPDATE SET attempt = excluded.attempt, token = excluded.token, expires = excluded.expires, changed = excluded.changed
 WHERE NOT o.done AND o.fingerprint = excluded.fingerprint AND (o.expires <= excluded.changed OR (o.token > 0 AND o.token < excluded.token))
