-- Lists the rows that a sweep would remove: their leases ended more than {older} ago. In key order,
-- a page at a time.
--
-- {after} name and {slot}: the page begins behind them  {older}  {limit} rows at most
-- columns: the row

/* rowlock:expired */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, now
  FROM rowlock_locks, (SELECT {clock} AS now) c
 WHERE (name, slot) > ({after}::text, {slot}::bigint) AND expires <= now - {older}::bigint
 ORDER BY name, slot LIMIT {limit}::bigint
