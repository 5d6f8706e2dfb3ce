-- Guard the caller's transaction: while it lasts, nobody is granted this lock.
--
-- ? name
-- columns: token. It must be that of the grant: if it is higher, or there is no row, the lock is lost.
--
-- Run inside the caller's transaction; also by hand. Every grant and every break changes the token row,
-- so none can commit between this share lock and the caller's commit. Renewals and releases change
-- only the lock row, which is not looked at here: at SERIALIZABLE that would lock it. A locking read
-- sees the newest row at any isolation.

/* rowlock:guard */
SELECT token FROM rowlock_tokens WHERE name = ? LOCK IN SHARE MODE
