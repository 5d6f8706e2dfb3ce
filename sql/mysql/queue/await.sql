-- Wait for the wakeup of the one before us: the user-level lock that everybody who stands in line
-- keeps, named by his request, until he releases the lock that he was granted or leaves the line,
-- or his session ends.
--
-- ? wakeup: 'rowlock:', the identity of this installation, ':', 16 hexadecimal digits  ? seconds  ?
-- wakeup again
-- columns: 1 woken, 0 the time is over, NULL interrupted; whether we have let go of it again
--
-- Not a transaction, and nothing is written. Fractions of a second count on MariaDB only.

/* rowlock:await */
SELECT GET_LOCK(?, ?), RELEASE_LOCK(?)
