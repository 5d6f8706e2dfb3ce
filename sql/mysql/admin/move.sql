-- Moves the mark of a member on, so that a copy of the database that was made before is an old one.
--
-- {member}  {mark}: the member's, as it was read  {from}: when it last moved, as it was read
-- {to}: later than that
--
-- No row is changed: another program has moved it, or this database is not what it was.
--
-- Atomic: one statement.

/* rowlock:move */
UPDATE rowlock_members SET moved = {to}
 WHERE member = {member} AND mark = {mark} AND moved = {from}
