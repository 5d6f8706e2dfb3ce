-- After once_complete changed nothing: is the claim gone, or is the transaction's snapshot only too
-- old to show it?
--
-- {key}  {claim}
-- rows changed: 0, or 1: there is no such key; give the row made back by once_abandon
--
-- Inside the caller's transaction. Above READ COMMITTED it meets a row that the snapshot does not
-- show, and PostgreSQL says 40001. At READ COMMITTED each statement sees the newest state, and
-- nothing is tried.

/* rowlock:once_prove */
INSERT INTO rowlock_once (name, fingerprint, claim, token, expires, done, changed)
SELECT {key}::text, '', {claim}::bigint, 0, 0, false, 0
 WHERE pg_catalog.current_setting('transaction_isolation') <> 'read committed'
ON CONFLICT (name) DO NOTHING
