-- Notes that a sweep has ended.
--
-- columns: none
--
-- One statement, which is a transaction. A file has one writer at a time.

/* rowlock:swept */
UPDATE rowlock_meta SET swept = {clock} WHERE id = 1
