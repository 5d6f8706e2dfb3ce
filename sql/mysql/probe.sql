-- Who holds the lock, as acquire would say it, by a plain read.
--
-- ? name  ? slot  ? owner  ? attempt
-- columns: the row. No row: nobody who would keep us out.

/* rowlock:probe */
SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM rowlock_locks
 WHERE name = ? AND slot = ?
   AND expires > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
   AND (owner <> ? OR attempt = ?)
