-- Finds whom to wake: the first in the queue.
--
-- {name}
-- columns: wakeup. No row: the queue is empty.
--
-- A plain read, in the transaction of the change that the waiter waits for, or after it.

/* rowlock:wake */
SELECT wakeup FROM rowlock_waiters
 WHERE name = {name} AND expires > {clock}
 ORDER BY ticket, request LIMIT 1
