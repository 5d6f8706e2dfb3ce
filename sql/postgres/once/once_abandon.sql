-- Give a key back that was claimed: it was not done.
--
-- {key}  {claim}
-- rows changed: 1, or 0: it is another's by now
--
-- One DELETE by key and claim.

/* rowlock:once_abandon */
DELETE FROM rowlock_once WHERE name = {key}::text AND claim = {claim}::bigint AND NOT done
