-- Leave the line without a grant.
--
-- {name}  {request}
-- rows deleted: 1 there was a ticket, 0 there was none
--
-- Atomic: one DELETE.

/* rowlock:leave */
DELETE FROM rowlock_waiters WHERE name = {name} AND request = {request}
