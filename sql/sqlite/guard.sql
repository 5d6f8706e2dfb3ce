-- Guard the caller's transaction: while it lasts, nobody is granted this lock.
--
-- ?1 name  ?2 slot  ?3 owner  ?4 token
-- columns: the newest token of the name; whether the grant stands. No row: it is lost.
--
-- Run inside the caller's transaction; also by hand. A write, which changes nothing, makes the
-- transaction the one writer of the file, found or not: no grant can commit before it has ended. Nor,
-- here, can a renewal or another's release. An exclusive grant stands while its token is the newest; other
-- grants of a shared or counted lock bump it too, but remove the row of every grant that they conflict with.

/* rowlock:guard */
UPDATE rowlock_tokens SET token = token WHERE name = ?1
RETURNING token, token = ?4 OR (?2 <> 0 AND ?4 > fenced AND EXISTS (
    SELECT 1 FROM rowlock_locks l WHERE l.name = ?1 AND l.slot = ?2 AND l.owner = ?3 AND l.token = ?4))
