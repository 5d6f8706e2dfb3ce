-- Removes one batch of rows whose leases ended more than {older} ago.
--
-- {after} name and {slot}: the batch begins behind them  {older}  {limit} rows at most
-- columns: how many rows, and the name and the slot of the last one. No row: none was removed.
--
-- Atomic: as sweep. To report each row would take half as long again.

/* rowlock:sweep_quiet */
WITH gone AS (
    DELETE FROM rowlock_locks
     WHERE ctid = ANY (ARRAY(
               SELECT l.ctid FROM rowlock_locks l
                WHERE (l.name, l.slot) > ({after}::text, {slot}::bigint)
                  AND l.expires <= (SELECT {clock}) - {older}::bigint
                ORDER BY l.name, l.slot LIMIT {limit}::bigint FOR UPDATE SKIP LOCKED))
    RETURNING name, slot
)
SELECT (SELECT pg_catalog.count(*) FROM gone), name, slot
  FROM gone ORDER BY name DESC, slot DESC LIMIT 1
