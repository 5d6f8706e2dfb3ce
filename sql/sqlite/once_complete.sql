-- Say that what a key stands for was done, with a result for those who ask again.
--
-- ?1 result  ?2 key  ?3 attempt
-- rows changed: 1, or 0: it has been claimed again since
--
-- One UPDATE by key and attempt, in the transaction in which it was done.

/* rowlock:once_complete */
UPDATE rowlock_once SET done = 1, result = ?1, changed = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
 WHERE name = ?2 AND attempt = ?3
