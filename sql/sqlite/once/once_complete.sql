-- Completes a claimed key, with a result for clients that ask for the key later.
--
-- {result}  {key}  {claim}
-- rows changed: 1, or 0 if the claim is gone
--
-- Atomic: one UPDATE by key and claim. It runs in the transaction that does the work.

/* rowlock:once_complete */
UPDATE rowlock_once SET done = 1, result = {result}, changed = {clock}
 WHERE name = {key} AND claim = {claim}
