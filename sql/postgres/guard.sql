-- Guard the caller's transaction: while it lasts, nobody is granted this lock.
--
-- $1 name
-- columns: token. It must be that of the grant: if it is higher, or there is no row, the lock is lost.
--
-- Run inside the caller's transaction; also by hand. Every grant and every break changes the token row,
-- so none can commit between this share lock and the caller's commit. Renewals and releases change
-- only the lock row, and go on. FOR KEY SHARE would not do: a bump does not touch the key. After a wait
-- the row is the newest; above READ COMMITTED PostgreSQL says 40001 if that is not the snapshot's.

/* rowlock:guard */
SELECT token FROM rowlock_tokens WHERE name = $1::text FOR SHARE
