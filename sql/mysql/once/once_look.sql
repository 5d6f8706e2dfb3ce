-- A key as it stands.
--
-- {key}
-- row: claim, fingerprint, done, result
--
-- After once_claim, whose transaction has locked the row, it sees the newest state.

/* rowlock:once_look */
SELECT claim, fingerprint, done, result FROM rowlock_once WHERE name = {key} LOCK IN SHARE MODE
