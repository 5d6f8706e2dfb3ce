-- Removes the grant of a request, unless it was renewed: then a holder counts on it.
--
-- {name}  {owner}  {request}
-- {token} of the grant, or a higher one that was granted before. So a copy that comes late does not
-- remove what the same request was granted since.
-- columns: one row if there was one. The first in the queue is woken.
--
-- Atomic: one DELETE of one row.

/* rowlock:retract */
WITH gone AS (
    DELETE FROM rowlock_locks WHERE name = {name}::text AND owner = {owner}::text
        AND request = {request}::bigint AND renewals = 0
        AND token <= {token}::bigint
    RETURNING name
)
SELECT rowlock_wake(name) IS NOT NULL FROM gone
