-- The grants that stand, in key order, a page at a time.
--
-- ? name, or NULL for all  ? the same again  ? name after which the page begins  ? the same again
-- ? slot after which it begins  ? rows at most
-- columns: the row

/* rowlock:list */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM rowlock_locks
 WHERE (? IS NULL OR name = ?) AND name >= ? AND (name > ? OR slot > ?)
 ORDER BY name, slot LIMIT ?
