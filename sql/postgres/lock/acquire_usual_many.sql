-- Grants the locks of many handles exclusively, each for itself, or reports the exclusive holder of
-- each. Leaves all other cases to acquire_many.
--
-- {name}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}: arrays of the same length
-- columns: the number of the request, from 1, and the answer of acquire_usual.sql.
--
-- Atomic: one statement.
-- - It locks a token row only if it saw neither a lock row nor a waiter, and skips a locked one.
-- - The token is the newest: PostgreSQL evaluates the row again when it has locked it. So permits
--   is still 0 then, and no grant of another kind stands (invariant 3).
-- - A rival's row that this statement does not see yet has the same key. The INSERT finds it, and
--   does nothing. The same holds for a second request for the name in the same batch.

/* rowlock:acquire_usual_many */
WITH wanted AS MATERIALIZED (
    SELECT w.*, c.now, l.name AS l_name, l.slot, l.permits, l.owner AS l_owner, l.token,
           l.acquired, l.expires, l.ttl AS l_ttl, l.renewals, l.host AS l_host, l.pid AS l_pid,
           l.program AS l_program, l.note AS l_note, l.xmax <> '0'::pg_catalog.xid AS changing
      FROM (SELECT {clock} AS now) c,
           unnest({name}::text[], {owner}::text[], {request}::bigint[], {ttl}::bigint[],
                  {host}::text[], {pid}::bigint[], {program}::text[], {note}::text[])
           WITH ORDINALITY AS w (name, owner, request, ttl, host, pid, program, note, n)
      LEFT JOIN rowlock_locks l ON l.name = w.name AND l.slot = 0
), counter AS MATERIALIZED (
    SELECT w.n, t.token + 1 AS next
      FROM wanted w JOIN rowlock_tokens t ON t.name = w.name
     WHERE w.l_name IS NULL AND t.permits = 0
       AND NOT EXISTS (SELECT FROM rowlock_waiters q WHERE q.name = w.name)
       FOR NO KEY UPDATE OF t SKIP LOCKED
), granted AS (
    INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires, ttl,
                               host, pid, program, note)
    SELECT w.name, 0, 0, w.owner, c.next, w.request, w.now, w.now + w.ttl, w.ttl, w.host, w.pid,
           w.program, w.note
      FROM counter c JOIN wanted w ON w.n = c.n
    ON CONFLICT (name, slot) DO NOTHING
    RETURNING name, token, request, acquired
), counted AS (
    UPDATE rowlock_tokens t SET token = g.token, granted = g.acquired
      FROM granted g WHERE t.name = g.name
)
SELECT w.n,
       CASE WHEN g.token IS NOT NULL THEN g.token
            WHEN w.l_name IS NULL OR w.expires <= w.now OR w.l_owner = w.owner THEN 0 END,
       CASE WHEN w.expires > w.now THEN false END, w.changing, false, w.now, w.l_name, w.slot,
       w.permits, w.l_owner, w.token, w.acquired, w.expires, w.l_ttl, w.renewals, w.l_host,
       w.l_pid, w.l_program, w.l_note
  FROM wanted w LEFT JOIN granted g ON g.name = w.name AND g.request = w.request
