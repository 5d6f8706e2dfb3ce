-- Notes that a sweep has ended.
--
-- columns: none
--
-- It does not block first grants, which lock the row FOR KEY SHARE until their commit. If another
-- transaction is changing the row, it is skipped, and the next sweep notes it.

/* rowlock:swept */
UPDATE rowlock_meta m SET swept = {clock}
  FROM (SELECT id FROM rowlock_meta WHERE id = 1 FOR NO KEY UPDATE SKIP LOCKED) free
 WHERE m.id = free.id
