-- Gives a claimed key back, and keeps it: its work failed.
--
-- {result} why  {ttl} until when others must not claim the key, in microseconds from now
-- {key}  {claim}
-- rows changed: 1, or 0 if the claim is gone
--
-- Its token is 0 then, so a claim under a newer token waits for that time too. The claim is 0, so
-- that it cannot be completed, and another fingerprint need not wait. Without a pause no clock that
-- steps back can make one. The next claim may leave the result as it is: only that of a key that is
-- done is read by claimers.
--
-- Atomic: one UPDATE by key and claim.

/* rowlock:once_fail */
UPDATE rowlock_once SET claim = 0, token = 0, result = {result}, changed = {clock},
       expires = CASE WHEN {ttl} > 0 THEN {clock} + {ttl} ELSE 0 END
 WHERE name = {key} AND claim = {claim} AND NOT done
