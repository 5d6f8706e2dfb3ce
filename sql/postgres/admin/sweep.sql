-- Removes one batch of rows whose leases ended more than {older} ago, and reports them.
--
-- {after} name and {slot}: the batch begins behind them  {older}  {limit} rows at most
-- columns: each removed row, in any order
--
-- Atomic: one statement. SKIP LOCKED skips rows that another client is renewing or taking over. The
-- condition is checked on the row version that is locked. Nothing can change that version before it
-- is deleted, so its physical address finds it. The clock is read once, at the beginning: what had
-- expired then is expired later, too.

/* rowlock:sweep */
DELETE FROM rowlock_locks
 WHERE ctid = ANY (ARRAY(
           SELECT l.ctid FROM rowlock_locks l
            WHERE (l.name, l.slot) > ({after}::text, {slot}::bigint)
              AND l.expires <= (SELECT {clock}) - {older}::bigint
            ORDER BY l.name, l.slot LIMIT {limit}::bigint FOR UPDATE SKIP LOCKED))
RETURNING name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
    note, (SELECT {clock})
