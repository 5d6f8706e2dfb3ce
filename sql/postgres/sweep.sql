-- Remove one batch of rows whose lease has been over for $3.
--
-- $1 name and $2 slot after which the batch begins  $3 older  $4 rows at most
-- columns: the row, of each row removed, in key order
--
-- Atomic and harmless: SKIP LOCKED passes over what another is renewing or taking over, and the
-- predicate is evaluated on the very row version that is locked, and so deleted.

/* rowlock:sweep */
WITH over AS MATERIALIZED (
    SELECT name, slot FROM rowlock_locks
     WHERE (name, slot) > ($1::text, $2::bigint)
       AND expires <= (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint - $3::bigint
     ORDER BY name, slot LIMIT $4::bigint FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM rowlock_locks l USING over o
     WHERE l.name = o.name AND l.slot = o.slot
       AND l.expires <= (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint - $3::bigint
    RETURNING l.*
)
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
  FROM gone ORDER BY name, slot
