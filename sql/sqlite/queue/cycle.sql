-- Does a waiter wait, through others, for itself? Of the waiters in a circle only the one with the
-- newest ticket is told; where two tickets are the same, as those of two lines can be, the name
-- decides.
--
-- {name}  {owner}  {ticket}
-- columns: the circle in words, beginning with the lock we wait for. No row: there is none, or
-- another has the newest ticket of it.
--
-- A plain read. From a waiter one gets to the owners of the grants that keep it waiting, and from
-- an owner to the waiters of the same owner, as far as their tickets are older than ours. Each
-- owner is reached once in each number of steps, not by every way there is: many who share locks
-- make more ways than can be gone. One shortest circle is then told from its end. Owners that are
-- made up for each handle wait for one lock only, and are never in a circle.

/* rowlock:cycle */
WITH RECURSIVE given (now) AS (
    SELECT {clock}
), waits (owner, name, holder) AS MATERIALIZED (
    SELECT w.owner, w.name, l.owner
      FROM given g
      JOIN rowlock_waiters w ON w.expires > g.now AND (w.ticket, w.name) < ({ticket}, {name})
      JOIN rowlock_locks l ON l.name = w.name AND l.owner <> w.owner AND l.expires > g.now
), reached (owner, steps) AS MATERIALIZED (
    SELECT l.owner, 1
      FROM given g JOIN rowlock_locks l ON l.name = {name} AND l.owner <> {owner}
          AND l.expires > g.now
    UNION
    SELECT e.holder, r.steps + 1 FROM reached r JOIN waits e ON e.owner = r.owner
     WHERE r.owner <> {owner} AND r.steps < 32
), back (owner, steps, next, words) AS (
    SELECT * FROM (SELECT owner, steps, NULL, '' FROM reached WHERE owner = {owner} ORDER BY steps
                   LIMIT 1)
    UNION ALL
    SELECT (SELECT min(r.owner) FROM reached r JOIN waits e ON e.owner = r.owner
            AND e.holder = b.owner
             WHERE r.steps = b.steps - 1), b.steps - 1, b.owner,
           CASE WHEN b.next IS NULL THEN '' ELSE ', ''' || (
               SELECT min(e.name) FROM waits e WHERE e.owner = b.owner AND e.holder = b.next)
               || ''' held by ''' || b.next || '''' END || b.words
      FROM back b WHERE b.steps > 0
)
SELECT '''' || {name} || ''' held by ''' || next || '''' || words FROM back WHERE steps = 0
