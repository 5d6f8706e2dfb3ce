-- Leave the line without a grant. If we were the first in it, the next one is rung for.
--
-- {name}  {attempt}
-- columns: whether there was a ticket
--
-- Atomic: one statement.

/* rowlock:leave */
SELECT rowlock_leave({name}::text, {attempt}::bigint, false)
