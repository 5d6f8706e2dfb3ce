-- Does the grant that kept us out the last time still stand?
--
-- ? name  ? slot  ? owner
-- columns: the row. No row: it is gone or has expired, and acquire must be asked.
--
-- A plain read by the key, for a fifth of what the procedure of acquire costs.

/* rowlock:look */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM rowlock_locks
 WHERE name = ? AND slot = ? AND owner <> ?
   AND expires > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
