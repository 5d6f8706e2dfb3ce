-- Removes the rows of one batch whose leases ended more than {older} ago.
--
-- {after} name and {slot}: the batch begins behind them  {until} name and {until_slot}: it ends
-- with them (sweep_end). NULL: with the table  {older}
-- rows deleted
--
-- Atomic: as sweep. To report each row would take five times as long.

/* rowlock:sweep_quiet */
DELETE FROM rowlock_locks
 WHERE (name, slot) > ({after}, {slot})
   AND (name, slot) <= (coalesce({until}, x''), {until_slot})
   AND expires <= {clock} - {older}
