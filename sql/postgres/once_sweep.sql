-- Forget keys that were completed, or given up, long ago.
--
-- $1 older than, in microseconds  $2 at most
-- rows changed: how many
--
-- One statement; those that others have locked are passed over.

/* rowlock:once_sweep */
WITH old AS MATERIALIZED (
    SELECT name FROM rowlock_once
     WHERE changed <= (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint - $1::bigint AND (done OR expires <= (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint)
     LIMIT $2::bigint FOR UPDATE SKIP LOCKED
)
DELETE FROM rowlock_once o USING old WHERE o.name = old.name
