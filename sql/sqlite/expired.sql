-- A page of rows whose lease has been over for ?3, in key order: what a sweep would remove.
--
-- ?1 name and ?2 slot after which the page begins  ?3 older  ?4 rows at most
-- columns: the row

/* rowlock:expired */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_locks
 WHERE (name, slot) > (?1, ?2) AND expires <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 - ?3
 ORDER BY name, slot LIMIT ?4
