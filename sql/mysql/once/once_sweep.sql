-- Forget keys that were completed, or given up, long ago.
--
-- {older} than, in microseconds  {limit} at most
-- rows changed: how many
--
-- One statement; those that others have locked are passed over.

/* rowlock:once_sweep */
DELETE o FROM (
    SELECT name FROM rowlock_once
     WHERE changed <= {clock} - {older} AND (done OR expires <= {clock}) LIMIT {limit}
       FOR UPDATE SKIP LOCKED) old
  STRAIGHT_JOIN rowlock_once o ON o.name = old.name
