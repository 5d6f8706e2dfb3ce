-- Forget keys that were completed, or given up, long ago.
--
-- ? older than, in microseconds  ? at most
-- rows changed: how many
--
-- One statement; those that others have locked are passed over.

/* rowlock:once_sweep */
DELETE o FROM (
    SELECT name FROM rowlock_once
     WHERE changed <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - ? AND (done OR expires <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) LIMIT ?
       FOR UPDATE SKIP LOCKED) old
  STRAIGHT_JOIN rowlock_once o ON o.name = old.name
