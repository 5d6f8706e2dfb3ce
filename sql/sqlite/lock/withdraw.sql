-- Remove the grant that one request made, if it made one: its answer was lost.
--
-- {name}  {owner}  {request}
-- rows deleted: 1 there was one, 0 there is none
--
-- Atomic: one DELETE. The driver then wakes for the first in line.

/* rowlock:withdraw */
DELETE FROM rowlock_locks WHERE name = {name} AND owner = {owner} AND request = {request}
