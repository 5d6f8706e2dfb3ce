-- Whom to ring for: the first in line, after something has changed that it waits for.
--
-- {name}
-- columns: bell. No row: nobody waits.
--
-- A plain read, in the transaction of the change or after it.

/* rowlock:ring */
SELECT bell FROM rowlock_waiters
 WHERE name = {name} AND expires > {clock}
 ORDER BY ticket, attempt LIMIT 1
