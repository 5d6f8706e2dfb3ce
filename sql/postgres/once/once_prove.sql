-- Comes after once_complete changed nothing. Is the claim gone, or is the transaction's snapshot
-- too old to show it?
--
-- {key}  {claim}
-- rows changed: 0, or 1 if there is no such key. once_abandon then removes the row that this made.
--
-- Runs inside the caller's transaction.
-- - Above READ COMMITTED the insert meets a row that the snapshot does not show. PostgreSQL then
--   fails with 40001.
-- - At READ COMMITTED each statement sees the newest state, so nothing is inserted.

/* rowlock:once_prove */
INSERT INTO rowlock_once (name, fingerprint, claim, token, expires, done, changed)
SELECT {key}::text, '', {claim}::bigint, 0, 0, false, 0
 WHERE pg_catalog.current_setting('transaction_isolation') <> 'read committed'
ON CONFLICT (name) DO NOTHING
