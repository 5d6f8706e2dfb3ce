-- Forget token counters unused for {idle}, and raise the floor that new names start above to the
-- highest token among them, so that no token is ever repeated.
--
-- {idle}  {limit} counters at most  {dry} run
-- columns: how many counters
--
-- Atomic: one statement. The floor's row is locked first and until the commit; whoever creates a
-- counter share-locks it (install/rowlock_grant.sql), so none starts below what is folded here. A
-- counter that a grant holds is passed over, one with a lock standing stays; and so does one that
-- has another token than this statement's snapshot shows: the lock granted since then is not in
-- that snapshot.

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
