-- Raise the floor and every token counter above whatever was granted before: after a failover that may
-- have lost the newest grants.
--
-- $1 by
-- columns: the new floor
--
-- Atomic: one statement. It waits for the floor and for grants in flight and guarded transactions, each
-- of which holds its token row.

/* rowlock:raise */
WITH floor AS MATERIALIZED (
    SELECT token_floor FROM rowlock_meta WHERE id = 1 FOR UPDATE
), held AS MATERIALIZED (
    SELECT t.name, t.token FROM rowlock_tokens t, floor ORDER BY t.name FOR NO KEY UPDATE OF t
), raised AS MATERIALIZED (
    SELECT greatest((SELECT token_floor FROM floor), (SELECT pg_catalog.max(token) FROM held)) + $1::bigint AS token
), counters AS (
    UPDATE rowlock_tokens t SET token = r.token, fenced = r.token FROM raised r, held h WHERE t.name = h.name
)
UPDATE rowlock_meta m SET token_floor = r.token FROM raised r WHERE m.id = 1 RETURNING m.token_floor
