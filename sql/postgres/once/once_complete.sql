-- Say that what a key stands for was done, with a result for those who ask again.
--
-- {result}  {key}  {claim}
-- rows changed: 1, or 0: it has been claimed again since
--
-- One UPDATE by key and claim, in the transaction in which it was done.

/* rowlock:once_complete */
UPDATE rowlock_once SET done = true, result = {result}::bytea, changed = {clock}
 WHERE name = {key}::text AND claim = {claim}::bigint
