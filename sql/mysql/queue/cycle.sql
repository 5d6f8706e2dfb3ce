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
WITH RECURSIVE given AS (
    SELECT CAST({name} AS BINARY) AS name, CAST({owner} AS BINARY) AS owner,
           CAST({ticket} AS SIGNED) AS ticket, {clock} AS now
), waits (owner, name, holder) AS (
    SELECT w.owner, w.name, l.owner
      FROM given g
      JOIN rowlock_waiters w
        ON w.expires > g.now AND (w.ticket < g.ticket OR (w.ticket = g.ticket AND w.name < g.name))
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
    SELECT last.* FROM (SELECT r.owner, r.steps, CAST(NULL AS BINARY(255)) AS next,
                               CAST('' AS CHAR(8000)) AS words
                          FROM reached r JOIN given g ON r.owner = g.owner ORDER BY r.steps
                              LIMIT 1) last
    UNION ALL
    SELECT (SELECT MIN(r.owner) FROM reached r JOIN waits e ON e.owner = r.owner
            AND e.holder = b.owner
             WHERE r.steps = b.steps - 1), b.steps - 1, b.owner,
           LEFT(CONCAT(IF(b.next IS NULL, '', CONCAT(', ''', (
               SELECT MIN(e.name) FROM waits e WHERE e.owner = b.owner AND e.holder = b.next),
               ''' held by ''', b.next, '''')), b.words), 8000)
      FROM back b WHERE b.steps > 0
)
SELECT CONCAT('''', g.name, ''' held by ''', b.next, '''', b.words) FROM back b JOIN given g
 WHERE b.steps = 0
