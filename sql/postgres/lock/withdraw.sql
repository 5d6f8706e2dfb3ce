-- Remove the grant that one attempt made, if it made one: its answer was lost.
--
-- {name}  {owner}  {attempt}
-- columns: one row if there was one. The first in line is rung for.
--
-- Atomic: one DELETE of one row.

/* rowlock:withdraw */
WITH gone AS (
    DELETE FROM rowlock_locks WHERE name = {name}::text AND owner = {owner}::text
        AND attempt = {attempt}::bigint
    RETURNING name
)
SELECT rowlock_ring(name) IS NOT NULL FROM gone
