-- Removes one row that expired.sql has found, if it is the same grant and still expired.
--
-- {name}  {slot}  {token}  {older}
-- rows deleted: 1, or 0 if it was renewed, released or taken over meanwhile
--
-- Atomic: one DELETE of one row by its key, with the condition repeated. DELETE has no SKIP LOCKED,
-- but the SELECT before it has. So a row that another transaction has locked is skipped.

/* rowlock:sweep_one */
DELETE l FROM (
    SELECT name, slot FROM rowlock_locks
     WHERE name = {name} AND slot = {slot} AND token = {token}
       AND expires <= {clock} - {older}
     LIMIT 1 FOR UPDATE SKIP LOCKED) s
  STRAIGHT_JOIN rowlock_locks l ON l.name = s.name AND l.slot = s.slot
