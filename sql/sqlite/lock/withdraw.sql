-- Removes the grant of a request whose answer was lost, if there is one.
--
-- {name}  {owner}  {request}
-- rows deleted: 1 there was one, 0 there is none
--
-- Atomic: one DELETE. The driver then wakes the first in the queue.

/* rowlock:withdraw */
DELETE FROM rowlock_locks WHERE name = {name} AND owner = {owner} AND request = {request}
