-- Lists grants in key order, a page at a time.
--
-- {name}, or NULL for all  {limit} rows at most
-- {after} name and {slot}: the page begins behind them
-- columns: the row

/* rowlock:list */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE ({name} IS NULL OR name = {name}) AND (name, slot) > ({after}, {slot})
 ORDER BY name, slot LIMIT {limit}
