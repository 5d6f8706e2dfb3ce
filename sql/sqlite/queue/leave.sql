-- Leaves the queue without a grant.
--
-- {name}  {request}
-- rows deleted: 1, or 0 if there was no ticket
--
-- Atomic: one DELETE. The driver then wakes the first in the queue.

/* rowlock:leave */
DELETE FROM rowlock_waiters WHERE name = {name} AND request = {request}
