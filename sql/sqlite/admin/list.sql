-- Lists grants in key order, a page at a time.
--
-- {name}, or NULL for all  {limit} rows at most
-- {after} name and {slot}: the page begins behind them
-- columns: the row
--
-- SQLite looks in one plan for all values. So the name is a range of the key: every blob is above
-- every text.

/* rowlock:list */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE name >= coalesce({name}, {after}) AND name <= coalesce({name}, x'')
   AND (name > {after} OR slot > {slot})
 ORDER BY name, slot LIMIT {limit}
