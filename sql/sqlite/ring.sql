-- Whom to ring for: the first in line, after something has changed that it waits for.
--
-- ?1 name
-- columns: bell. No row: nobody waits.
--
-- A plain read, in the transaction of the change or after it.

/* rowlock:ring */
SELECT bell FROM rowlock_waiters
 WHERE name = ?1 AND expires > CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
 ORDER BY ticket, attempt LIMIT 1
