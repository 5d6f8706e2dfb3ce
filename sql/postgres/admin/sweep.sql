-- Remove one batch of rows whose lease has been over for {older}.
--
-- {after} name and {slot} after which the batch begins  {older}  {limit} rows at most
-- columns: the row, of each row removed, in key order
--
-- Atomic and harmless: SKIP LOCKED passes over what another is renewing or taking over, and the
-- predicate is evaluated on the very row version that is locked, and so deleted.

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
