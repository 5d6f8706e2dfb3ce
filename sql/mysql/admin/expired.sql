-- A page of rows whose lease has been over for so long, in key order: what a sweep would remove.
--
-- {after} name after which the page begins  {slot} after which it begins  {older}
-- {limit} rows at most
-- columns: the row
--
-- A plain read, which locks nothing: DELETE or FOR UPDATE would lock every row they pass.

/* rowlock:expired */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE name >= {after} AND (name > {after} OR slot > {slot})
   AND expires <= {clock} - {older}
 ORDER BY name, slot LIMIT {limit}
