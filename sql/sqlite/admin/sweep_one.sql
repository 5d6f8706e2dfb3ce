-- Remove one row that expired.sql has found, if it is still the same grant and still over.
--
-- {name}  {slot}  {token}  {older}
-- rows deleted: 1 removed, 0 renewed, released or taken over meanwhile
--
-- Atomic: one DELETE of one row by its key, the predicate repeated.

/* rowlock:sweep_one */
DELETE FROM rowlock_locks
 WHERE name = {name} AND slot = {slot} AND token = {token}
   AND expires <= {clock} - {older}
