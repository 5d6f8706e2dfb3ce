-- A page of rows whose lease has been over for {older}, in key order: what a sweep would remove.
--
-- {after} name and {slot} after which the page begins  {older}  {limit} rows at most
-- columns: the row

/* rowlock:expired */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE (name, slot) > ({after}, {slot}) AND expires <= {clock} - {older}
 ORDER BY name, slot LIMIT {limit}
