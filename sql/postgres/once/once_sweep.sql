-- Removes keys that were completed long ago, or whose claims ran out long ago.
--
-- {older} than this age, in microseconds  {limit} rows at most
-- rows changed: how many
--
-- Atomic: one statement. It skips rows that another transaction has locked.

/* rowlock:once_sweep */
WITH old AS MATERIALIZED (
    SELECT name FROM rowlock_once
     WHERE changed <= {clock} - {older}::bigint AND (done OR expires <= {clock})
     LIMIT {limit}::bigint FOR UPDATE SKIP LOCKED
)
DELETE FROM rowlock_once o USING old WHERE o.name = old.name
