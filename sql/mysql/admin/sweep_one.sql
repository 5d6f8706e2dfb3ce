-- Remove one row that expired.sql has found, if it is still the same grant and still over.
--
-- {name}  {slot}  {token}  {older}
-- rows deleted: 1 removed, 0 renewed, released or taken over meanwhile
--
-- Atomic: one DELETE of one row by its key, the predicate repeated. A row that another transaction
-- has locked is passed over: DELETE itself has no SKIP LOCKED, but the look before it has.

/* rowlock:sweep_one */
DELETE l FROM (
    SELECT name, slot FROM rowlock_locks
     WHERE name = {name} AND slot = {slot} AND token = {token}
       AND expires <= {clock} - {older}
     LIMIT 1 FOR UPDATE SKIP LOCKED) s
  STRAIGHT_JOIN rowlock_locks l ON l.name = s.name AND l.slot = s.slot
