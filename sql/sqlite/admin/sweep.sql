-- Removes the rows of one batch whose leases ended more than {older} ago, and reports them.
--
-- {after} name and {slot}: the batch begins behind them  {until} name and {until_slot}: it ends
-- with them (sweep_end). NULL: with the table  {older}
-- columns: each removed row, in any order
--
-- Atomic: one DELETE. A file has one writer at a time. Every blob is above every text.

/* rowlock:sweep */
DELETE FROM rowlock_locks
 WHERE (name, slot) > ({after}, {slot})
   AND (name, slot) <= (coalesce({until}, x''), {until_slot})
   AND expires <= {clock} - {older}
RETURNING name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
    note, {clock}
