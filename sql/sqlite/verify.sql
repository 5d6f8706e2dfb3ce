-- Does this owner and token hold the lock?
--
-- ?1 name  ?2 slot  ?3 owner  ?4 token
-- columns: expires, now. No row: lost.

/* rowlock:verify */
SELECT expires, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND owner = ?3 AND token = ?4
