-- Say that what a key stands for was done, with a result for those who ask again.
--
-- {result}  {key}  {claim}
-- rows changed: 1, or 0: it has been claimed again since
--
-- One UPDATE by key and claim, in the transaction in which it was done.

/* rowlock:once_complete */
UPDATE rowlock_once SET done = 1, result = {result}, changed = {clock}
 WHERE name = {key} AND claim = {claim}
