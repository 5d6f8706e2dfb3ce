-- Waits for the wake-up of the waiter or holder before us. A wake-up is a user-level lock with the
-- request in its name. Its session holds it until one of these happens:
-- - it releases the lock it was granted
-- - it leaves the queue
-- - the session ends
--
-- ? wake-up: 'rowlock:', the identity of this installation, ':', 16 hexadecimal digits
-- ? seconds
-- ? wake-up again
-- columns: 1 woken, 0 the time is over, NULL interrupted; whether we have released the wake-up
-- again
--
-- Not a transaction. It writes nothing. Only MariaDB counts fractions of a second.

/* rowlock:await */
SELECT GET_LOCK(?, ?), RELEASE_LOCK(?)
