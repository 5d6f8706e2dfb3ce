-- Where a batch of a sweep ends: after that many rows, expired or not.
--
-- {after} name and {slot}: the batch begins behind them  {limit}
-- columns: name, slot. No row: the batch is the rest of the table.
--
-- A plain read. It bounds the rows that the next statement reads while others cannot write.

/* rowlock:sweep_end */
SELECT name, slot FROM rowlock_locks
 WHERE (name, slot) > ({after}, {slot})
 ORDER BY name, slot LIMIT 1 OFFSET {limit} - 1
