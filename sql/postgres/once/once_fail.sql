-- Gives a claimed key back, and keeps it: its work failed.
--
-- {result} why  {ttl} until when others must not claim the key, in microseconds from now
-- {key}  {claim}
-- rows changed: 1, or 0 if the claim is gone
--
-- Its token is 0 then, so a claim under a newer token waits for that time too. The next claim may
-- leave the result as it is: only that of a key that is done is read by claimers.
--
-- Atomic: one UPDATE by key and claim.

/* rowlock:once_fail */
UPDATE rowlock_once SET token = 0, result = {result}::bytea, expires = {clock} + {ttl}::bigint,
       changed = {clock}
 WHERE name = {key}::text AND claim = {claim}::bigint AND NOT done
