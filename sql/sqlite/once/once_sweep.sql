-- Forget keys that were completed, or given up, long ago.
--
-- {older} than, in microseconds  {limit} at most
-- rows changed: how many
--
-- One statement.

/* rowlock:once_sweep */
DELETE FROM rowlock_once WHERE name IN (
    SELECT name FROM rowlock_once
     WHERE changed <= {clock} - {older} AND (done OR expires <= {clock}) LIMIT {limit})
