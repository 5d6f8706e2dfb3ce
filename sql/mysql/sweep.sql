-- Remove one row that expired.sql has found, if it is still the same grant and still over.
--
-- ? name  ? slot  ? token  ? older
-- rows deleted: 1 removed, 0 renewed, released or taken over meanwhile
--
-- Atomic: one DELETE of one row by its key, the predicate repeated.

/* rowlock:sweep */
DELETE FROM rowlock_locks
 WHERE name = ? AND slot = ? AND token = ?
   AND expires <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - ?
