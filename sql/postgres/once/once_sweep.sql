-- Forget keys that were completed, or given up, long ago.
--
-- {older} than, in microseconds  {limit} at most
-- rows changed: how many
--
-- One statement; those that others have locked are passed over.

/* rowlock:once_sweep */
WITH old AS MATERIALIZED (
    SELECT name FROM rowlock_once
     WHERE changed <= {clock} - {older}::bigint AND (done OR expires <= {clock})
     LIMIT {limit}::bigint FOR UPDATE SKIP LOCKED
)
DELETE FROM rowlock_once o USING old WHERE o.name = old.name
