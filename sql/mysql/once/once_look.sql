-- A key as it stands.
--
-- {key}
-- row: attempt, fingerprint, done, result
--
-- After once_claim, whose transaction has locked the row, it sees the newest state.

/* rowlock:once_look */
SELECT attempt, fingerprint, done, result FROM rowlock_once WHERE name = {key} LOCK IN SHARE MODE
