-- Give a key back that was claimed: it was not done.
--
-- $1 key  $2 attempt
-- rows changed: 1, or 0: it is another's by now
--
-- One DELETE by key and attempt.

/* rowlock:once_abandon */
DELETE FROM rowlock_once WHERE name = $1::text AND attempt = $2::bigint AND NOT done
