-- Is the grant that kept us out the last time still there?
--
-- {name}  {slot}  {token} of that grant
-- columns: expires, ttl, renewals, now. No row: it is gone or has expired, so look is asked.
--
-- A plain read by the key. It reads what a renewal changes: the rest of the row is known. A text
-- costs an allocation for each time that SQLite reads it.

/* rowlock:still_held */
SELECT expires, ttl, renewals, {clock} + 1000
  FROM rowlock_locks
 WHERE name = {name} AND slot = {slot} AND token = {token} AND expires > {clock}
