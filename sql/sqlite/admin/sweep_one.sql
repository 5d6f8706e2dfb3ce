-- Removes one row that expired.sql has found, if it is the same grant and still expired.
--
-- {name}  {slot}  {token}  {older}
-- rows deleted: 1, or 0 if it was renewed, released or taken over meanwhile
--
-- Atomic: one DELETE of one row by its key, with the condition repeated.

/* rowlock:sweep_one */
DELETE FROM rowlock_locks
 WHERE name = {name} AND slot = {slot} AND token = {token}
   AND expires <= {clock} - {older}
