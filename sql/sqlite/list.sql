-- The grants that stand, in key order, a page at a time.
--
-- ?1 name, or NULL for all  ?2 name and ?3 slot after which the page begins  ?4 rows at most
-- columns: the row

/* rowlock:list */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_locks
 WHERE (?1 IS NULL OR name = ?1) AND (name, slot) > (?2, ?3)
 ORDER BY name, slot LIMIT ?4
