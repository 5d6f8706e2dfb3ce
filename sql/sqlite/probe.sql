-- Who holds the lock, as acquire would say it, by a plain read.
--
-- ?1 name  ?2 slot  ?3 owner  ?4 attempt
-- columns: the row. No row: nobody who would keep us out.

/* rowlock:probe */
SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_locks
 WHERE name = ?1 AND slot = ?2 AND (owner <> ?3 OR attempt = ?4)
   AND expires > CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
