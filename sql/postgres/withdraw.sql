-- Remove the grant that one attempt made, if it made one: its answer was lost.
--
-- $1 name  $2 owner  $3 attempt
-- columns: one row if there was one. The first in line is rung for.
--
-- Atomic: one DELETE of one row.

/* rowlock:withdraw */
WITH gone AS (
    DELETE FROM rowlock_locks WHERE name = $1::text AND owner = $2::text AND attempt = $3::bigint
    RETURNING name
)
SELECT rowlock_ring(name) FROM gone
