-- Remove the grant that one request made, if it made one: its answer was lost.
--
-- {name}  {owner}  {request}
-- columns: one row if there was one. The first in line is woken for.
--
-- Atomic: one DELETE of one row.

/* rowlock:withdraw */
WITH gone AS (
    DELETE FROM rowlock_locks WHERE name = {name}::text AND owner = {owner}::text
        AND request = {request}::bigint
    RETURNING name
)
SELECT rowlock_wake(name) IS NOT NULL FROM gone
