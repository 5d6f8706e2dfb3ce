-- Does the grant that kept us out the last time still stand?
--
-- {name}  {met} its slot  {owner}
-- columns: the row, now. No row: it is gone or has expired, and acquire must be asked.
--
-- A plain read by the key, for a fifth of what the procedure of acquire costs.

/* rowlock:still_held */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE name = {name} AND slot = {met} AND owner <> {owner} AND expires > {clock}
