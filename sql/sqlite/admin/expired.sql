-- Lists the rows that a sweep would remove: their leases ended more than {older} ago. In key order,
-- a page at a time.
--
-- {after} name and {slot}: the page begins behind them  {older}  {limit} rows at most
-- columns: the row

/* rowlock:expired */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE (name, slot) > ({after}, {slot}) AND expires <= {clock} - {older}
 ORDER BY name, slot LIMIT {limit}
