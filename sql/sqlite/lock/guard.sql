-- Guard the caller's transaction: while it lasts, nobody is granted this lock.
--
-- {name}  {slot}  {owner}  {token}
-- columns: the newest token of the name; whether the grant stands. No row: it is lost.
--
-- Run inside the caller's transaction; also by hand. A write, which changes nothing, makes the
-- transaction the one writer of the file, found or not: no grant can commit before it has ended.
-- Nor, here, can a renewal or another's release. An exclusive grant stands while its token is the
-- newest; other grants of a shared or counted lock bump it too, but remove the row of every grant
-- that they conflict with.

/* rowlock:guard */
UPDATE rowlock_tokens SET token = token WHERE name = {name}
RETURNING token, token = {token} OR ({slot} <> 0 AND {token} > fenced AND EXISTS (
    SELECT 1 FROM rowlock_locks l WHERE l.name = {name} AND l.slot = {slot} AND l.owner = {owner}
           AND l.token = {token}))
