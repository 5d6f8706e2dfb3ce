-- Leave the line without a grant. If we were the first in it, the next one is woken for.
--
-- {name}  {request}
-- columns: whether there was a ticket
--
-- Atomic: one statement.

/* rowlock:leave */
SELECT rowlock_leave({name}::text, {request}::bigint, false)
