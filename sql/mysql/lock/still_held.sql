-- Is the grant that kept us out the last time still there?
--
-- {name}  {slot}  {token} of that grant
-- columns: expires, ttl, renewals, now. No row: it is gone or has expired, so acquire is called.
--
-- A plain read by the key. It costs a fifth of the procedure of acquire. It reads what a renewal
-- changes: the rest of the row is known, and each further column costs both sides half a
-- microsecond.

/* rowlock:still_held */
SELECT expires, ttl, renewals, {clock}
  FROM rowlock_locks
 WHERE name = {name} AND slot = {slot} AND token = {token} AND expires > {clock}
