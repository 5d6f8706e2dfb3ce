-- Removes keys that were completed long ago, or whose claims ran out long ago.
--
-- {older} than this age, in microseconds  {limit} rows at most
-- rows changed: how many
--
-- Atomic: one statement.

/* rowlock:once_sweep */
DELETE FROM rowlock_once WHERE name IN (
    SELECT name FROM rowlock_once
     WHERE changed <= {clock} - {older} AND (done OR expires <= {clock}) LIMIT {limit})
