-- Give a key back that was claimed: it was not done.
--
-- {key}  {attempt}
-- rows changed: 1, or 0: it is another's by now
--
-- One DELETE by key and attempt.

/* rowlock:once_abandon */
DELETE FROM rowlock_once WHERE name = {key} AND attempt = {attempt} AND NOT done
