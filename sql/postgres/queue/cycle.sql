-- Does a waiter wait, through others, for itself?
--
-- {name}  {owner}  {ticket}
-- columns: the cycle in words, beginning with the lock that this waiter waits for. No row: there is
-- no cycle, or another waiter has its newest ticket.
--
-- Only the waiter with the newest ticket of a cycle is told. Two queues may give the same ticket.
-- Then the name decides.
--
-- A plain read. It goes from a waiter to the owners of the grants that keep it waiting. From an
-- owner it goes to the waiters of the same owner with older tickets. It reaches each owner once for
-- each number of steps: many owners of shared locks would make too many paths. Then it reads one
-- shortest cycle from its end. Generated owners wait for one lock only, so they are never in a
-- cycle.

/* rowlock:cycle */
WITH RECURSIVE given AS (
    SELECT {name}::text AS name, {owner}::text AS owner, {ticket}::bigint AS ticket,
           {clock} AS now
), waits (owner, name, holder) AS MATERIALIZED (
    SELECT w.owner, w.name, l.owner
      FROM given g
      JOIN rowlock_waiters w ON w.expires > g.now AND (w.ticket, w.name) < (g.ticket, g.name)
      JOIN rowlock_locks l ON l.name = w.name AND l.owner <> w.owner AND l.expires > g.now
), reached (owner, steps) AS (
    SELECT l.owner, 1
      FROM given g JOIN rowlock_locks l ON l.name = g.name AND l.owner <> g.owner
          AND l.expires > g.now
    UNION
    SELECT e.holder, r.steps + 1
      FROM reached r JOIN waits e ON e.owner = r.owner JOIN given g ON r.owner <> g.owner
     WHERE r.steps < 32
), back (owner, steps, next, words) AS (
    SELECT * FROM (SELECT r.owner, r.steps, NULL::text COLLATE "C", '' COLLATE "C"
                     FROM reached r JOIN given g ON r.owner = g.owner ORDER BY r.steps LIMIT 1) last
    UNION ALL
    SELECT (SELECT pg_catalog.min(r.owner) FROM reached r JOIN waits e ON e.owner = r.owner
            AND e.holder = b.owner
             WHERE r.steps = b.steps - 1), b.steps - 1, b.owner,
           CASE WHEN b.next IS NULL THEN '' ELSE ', ''' || (
               SELECT pg_catalog.min(e.name) FROM waits e WHERE e.owner = b.owner
                      AND e.holder = b.next)
               || ''' held by ''' || b.next || '''' END || b.words
      FROM back b WHERE b.steps > 0
)
SELECT '''' || g.name || ''' held by ''' || b.next || '''' || b.words FROM back b, given g
 WHERE b.steps = 0
