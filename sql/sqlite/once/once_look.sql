-- Reads a key.
--
-- {key}
-- row: claim, fingerprint, done, result
--
-- It comes after once_claim. That statement's transaction has locked the row, so this one sees the
-- newest state.

/* rowlock:once_look */
SELECT claim, fingerprint, done, result FROM rowlock_once WHERE name = {key}
