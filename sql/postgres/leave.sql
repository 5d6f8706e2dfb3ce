-- Leave the line without a grant. If we were the first in it, the next one is rung for.
--
-- $1 name  $2 attempt
-- columns: whether there was a ticket
--
-- Atomic: one statement.

/* rowlock:leave */
SELECT rowlock_leave($1::text, $2::bigint, false)
