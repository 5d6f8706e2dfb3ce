-- Forget keys that were completed, or given up, long ago.
--
-- ?1 older than, in microseconds  ?2 at most
-- rows changed: how many
--
-- One statement.

/* rowlock:once_sweep */
DELETE FROM rowlock_once WHERE name IN (
    SELECT name FROM rowlock_once
     WHERE changed <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 - ?1 AND (done OR expires <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000) LIMIT ?2)
