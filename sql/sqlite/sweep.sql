-- Remove one row that expired.sql has found, if it is still the same grant and still over.
--
-- ?1 name  ?2 slot  ?3 token  ?4 older
-- rows deleted: 1 removed, 0 renewed, released or taken over meanwhile
--
-- Atomic: one DELETE of one row by its key, the predicate repeated.

/* rowlock:sweep */
DELETE FROM rowlock_locks
 WHERE name = ?1 AND slot = ?2 AND token = ?3
   AND expires <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 - ?4
