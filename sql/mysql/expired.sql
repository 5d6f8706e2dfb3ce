-- A page of rows whose lease has been over for so long, in key order: what a sweep would remove.
--
-- ? name after which the page begins  ? the same again  ? slot after which it begins  ? older
-- ? rows at most
-- columns: the row
--
-- A plain read, which locks nothing: DELETE or FOR UPDATE would lock every row they pass.

/* rowlock:expired */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM rowlock_locks
 WHERE name >= ? AND (name > ? OR slot > ?)
   AND expires <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - ?
 ORDER BY name, slot LIMIT ?
