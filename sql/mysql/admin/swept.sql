-- Notes that a sweep has ended.
--
-- columns: none
--
-- It skips the row if another transaction has locked it. A sweep must not wait for a first grant,
-- which share-locks the floor until its commit. A first grant waits while this statement commits,
-- as it does for fold.sql. LIMIT keeps MySQL from merging the two SELECTs into one, which would
-- wait.

/* rowlock:swept */
UPDATE rowlock_meta m
  JOIN (SELECT id FROM rowlock_meta WHERE id = 1 LIMIT 1 FOR UPDATE SKIP LOCKED) free
    ON free.id = m.id
   SET m.swept = {clock}
