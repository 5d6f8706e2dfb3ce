-- Gives a claimed key back. Its work was not done.
--
-- {key}  {claim}
-- rows changed: 1, or 0 if the claim is gone
--
-- Atomic: one DELETE by key and claim.

/* rowlock:once_abandon */
DELETE FROM rowlock_once WHERE name = {key}::text AND claim = {claim}::bigint AND NOT done
