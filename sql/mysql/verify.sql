-- Does this owner and token hold the lock?
--
-- ? name  ? slot  ? owner  ? token
-- columns: expires, now. No row: lost.

/* rowlock:verify */
SELECT expires, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM rowlock_locks WHERE name = ? AND slot = ? AND owner = ? AND token = ?
