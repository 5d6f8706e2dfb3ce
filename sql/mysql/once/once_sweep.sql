-- Removes keys that were completed long ago, or whose claims ran out long ago.
--
-- {older} than this age, in microseconds  {limit} rows at most
-- rows changed: how many
--
-- Atomic: one statement. It skips rows that another transaction has locked. Without FORCE INDEX the
-- server may scan a small table, and wait for such a row.

/* rowlock:once_sweep */
DELETE o FROM (
    SELECT name FROM rowlock_once
     WHERE changed <= {clock} - {older} AND (done OR expires <= {clock}) LIMIT {limit}
       FOR UPDATE SKIP LOCKED) old
  STRAIGHT_JOIN rowlock_once o FORCE INDEX (PRIMARY) ON o.name = old.name
