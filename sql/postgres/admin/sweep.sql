-- Removes one batch of rows whose leases ended more than {older} ago.
--
-- {after} name and {slot}: the batch begins behind them  {older}  {limit} rows at most
-- columns: each removed row, in key order
--
-- Atomic: one statement. SKIP LOCKED skips rows that another client is renewing or taking over. The
-- condition is checked on the row version that is locked, which is the one that is deleted.

/* rowlock:sweep */
WITH over AS MATERIALIZED (
    SELECT name, slot FROM rowlock_locks
     WHERE (name, slot) > ({after}::text, {slot}::bigint)
       AND expires <= {clock} - {older}::bigint
     ORDER BY name, slot LIMIT {limit}::bigint FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM rowlock_locks l USING over o
     WHERE l.name = o.name AND l.slot = o.slot
       AND l.expires <= {clock} - {older}::bigint
    RETURNING l.*
)
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
       note, {clock}
  FROM gone ORDER BY name, slot
