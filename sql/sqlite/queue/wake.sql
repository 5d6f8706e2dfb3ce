-- Whom to wake for: the first in line, after something has changed that it waits for.
--
-- {name}
-- columns: wakeup. No row: nobody waits.
--
-- A plain read, in the transaction of the change or after it.

/* rowlock:wake */
SELECT wakeup FROM rowlock_waiters
 WHERE name = {name} AND expires > {clock}
 ORDER BY ticket, request LIMIT 1
