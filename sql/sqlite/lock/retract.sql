-- Removes the grant of a request, unless it was renewed: then a holder counts on it.
--
-- {name}  {owner}  {request}
-- {token} of the grant, or a higher one that was granted before. So a copy that comes late does not
-- remove what the same request was granted since.
-- rows deleted: 1 there was one, 0 there is none
--
-- Atomic: one DELETE. The driver then wakes the first in the queue.

/* rowlock:retract */
DELETE FROM rowlock_locks
 WHERE name = {name} AND owner = {owner} AND request = {request} AND renewals = 0
       AND token <= {token}
