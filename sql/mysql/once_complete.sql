-- Say that what a key stands for was done, with a result for those who ask again.
--
-- ? result  ? key  ? attempt
-- rows changed: 1, or 0: it has been claimed again since
--
-- One UPDATE by key and attempt, in the transaction in which it was done.

/* rowlock:once_complete */
UPDATE rowlock_once SET done = 1, result = ?, changed = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
 WHERE name = ? AND attempt = ?
