-- Is the grant that kept us out the last time still there?
--
-- {name}  {met} its slot  {owner}
-- columns: the row, now. No row: it is gone or has expired, so acquire is called.
--
-- A plain read by the key. It costs a fifth of the procedure of acquire.

/* rowlock:still_held */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM rowlock_locks
 WHERE name = {name} AND slot = {met} AND owner <> {owner} AND expires > {clock}
