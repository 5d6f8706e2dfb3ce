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
-- - The rows of holders are read for the other requests alone.

/* rowlock:acquire_usual_many */
WITH wanted AS MATERIALIZED (
    SELECT w.*, c.now
      FROM (SELECT {clock} AS now) c,
           unnest({name}::text[], {owner}::text[], {request}::bigint[], {ttl}::bigint[],
                  {host}::text[], {pid}::bigint[], {program}::text[], {note}::text[])
           WITH ORDINALITY AS w (name, owner, request, ttl, host, pid, program, note, n)
), granted AS (
    INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires, ttl,
                               host, pid, program, note)
    SELECT w.name, 0, 0, w.owner, t.token + 1, w.request, w.now, w.now + w.ttl, w.ttl, w.host,
           w.pid, w.program, w.note
      FROM wanted w JOIN rowlock_tokens t ON t.name = w.name AND t.permits = 0
     WHERE NOT EXISTS (SELECT FROM rowlock_locks l WHERE l.name = w.name)
       AND NOT EXISTS (SELECT FROM rowlock_waiters q WHERE q.name = w.name)
       FOR NO KEY UPDATE OF t SKIP LOCKED
    ON CONFLICT (name, slot) DO NOTHING
    RETURNING name, token, request, acquired
), counted AS (
    UPDATE rowlock_tokens t SET token = g.token, granted = g.acquired
      FROM granted g WHERE t.name = g.name
)
SELECT pg_catalog.array_position({request}::bigint[], g.request)::bigint, g.token, NULL::boolean,
       NULL::boolean, false, g.acquired, NULL::text, NULL::bigint, NULL::integer, NULL::text,
       NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text,
       NULL::bigint, NULL::text, NULL::text
  FROM granted g
UNION ALL
SELECT w.n, CASE WHEN l.name IS NULL OR l.expires <= w.now OR l.owner = w.owner THEN 0::bigint END,
       CASE WHEN l.expires > w.now THEN false END, l.xmax <> '0'::pg_catalog.xid, false, w.now,
       l.name, l.slot, l.permits, l.owner, l.token, l.acquired, l.expires, l.ttl, l.renewals,
       l.host, l.pid, l.program, l.note
  FROM wanted w LEFT JOIN rowlock_locks l ON l.name = w.name AND l.slot = 0
 WHERE w.request NOT IN (SELECT request FROM granted)
