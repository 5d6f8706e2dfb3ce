-- Forgets token counters that were idle for {idle}. Raises the floor to the highest token among
-- them. New names start above the floor, so no token is repeated.
--
-- {idle}  {limit} counters at most  {dry}: only counts them
-- columns: how many counters
--
-- Atomic: one statement. It locks the floor's row first, until the commit. A statement that creates
-- a counter share-locks that row (install/rowlock_grant.sql), so no new counter starts below a
-- folded token. These counters stay:
-- - a counter that a grant has locked
-- - a counter of a name with a lock row
-- - a counter whose token is not the one in this statement's snapshot: the snapshot lacks the lock
--   that was granted since

/* rowlock:fold */
WITH floor AS MATERIALIZED (
    SELECT token_floor FROM rowlock_meta WHERE id = 1 FOR UPDATE
), seen AS MATERIALIZED (
    SELECT t.name, t.token FROM rowlock_tokens t, floor
     WHERE t.granted <= {clock} - {idle}::bigint
       AND NOT EXISTS (SELECT FROM rowlock_locks l WHERE l.name = t.name)
     ORDER BY t.name LIMIT {limit}::bigint
), idle AS MATERIALIZED (
    SELECT t.name FROM rowlock_tokens t JOIN seen s ON t.name = s.name AND t.token = s.token
       FOR UPDATE OF t SKIP LOCKED
), gone AS (
    DELETE FROM rowlock_tokens t USING idle i WHERE t.name = i.name AND NOT {dry}::boolean
      RETURNING t.token
), raised AS (
    UPDATE rowlock_meta SET token_floor = greatest(token_floor,
                                                   (SELECT pg_catalog.max(token) FROM gone))
     WHERE id = 1 AND EXISTS (SELECT FROM gone)
)
SELECT pg_catalog.count(*) FROM idle
