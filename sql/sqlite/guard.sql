-- Guard the caller's transaction: while it lasts, nobody is granted this lock.
--
-- ?1 name
-- columns: token. It must be that of the grant: if it is higher, or there is no row, the lock is lost.
--
-- Run inside the caller's transaction; also by hand. A write, which changes nothing, makes the
-- transaction the one writer of the file, found or not: no grant can commit before it has ended. Nor,
-- here, can a renewal or another's release.

/* rowlock:guard */
UPDATE rowlock_tokens SET token = token WHERE name = ?1 RETURNING token
