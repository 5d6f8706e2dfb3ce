-- Leaves the queue without a grant. If the ticket was the first, wakes the next waiter.
--
-- {name}  {request}
-- columns: whether there was a ticket
--
-- Atomic: one statement.

/* rowlock:leave */
SELECT rowlock_leave({name}::text, {request}::bigint, false)
