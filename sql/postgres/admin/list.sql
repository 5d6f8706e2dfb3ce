-- The grants that stand, in key order, a page at a time.
--
-- {name}, or NULL for all  {after} name and {slot} after which the page begins  {limit} rows at
-- most
-- columns: the row

/* rowlock:list */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE ({name}::text IS NULL OR name = {name}::text)
   AND (name, slot) > ({after}::text, {slot}::bigint)
 ORDER BY name, slot LIMIT {limit}::bigint
