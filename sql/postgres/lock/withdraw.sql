-- Removes the grant of a request whose answer was lost, if there is one.
--
-- {name}  {owner}  {request}
-- columns: one row if there was one. The first in the queue is woken.
--
-- Atomic: one DELETE of one row.

/* rowlock:withdraw */
WITH gone AS (
    DELETE FROM rowlock_locks WHERE name = {name}::text AND owner = {owner}::text
        AND request = {request}::bigint
    RETURNING name
)
SELECT rowlock_wake(name) IS NOT NULL FROM gone
