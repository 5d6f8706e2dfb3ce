-- Note that a sweep has ended.
--
-- columns: none
--
-- It goes with first grants, which lock the row FOR KEY SHARE until their commit. If another
-- transaction changes the row, it is passed over: the next sweep notes it.

/* rowlock:swept */
UPDATE rowlock_meta m SET swept = {clock}
  FROM (SELECT id FROM rowlock_meta WHERE id = 1 FOR NO KEY UPDATE SKIP LOCKED) free
 WHERE m.id = free.id
