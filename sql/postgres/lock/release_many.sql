-- Releases the locks of many handles, each for itself.
--
-- {name} names  {slot} slots  {owner} owners  {token} tokens: arrays of the same length
-- columns: the number of the lock, from 1, and true: it was released. A negative number: another
-- transaction has the row locked. No row: lost.
--
-- Atomic: one statement. A locked row must not delay the others. A row whose xmax is set may be
-- locked. So only such rows are locked first, with SKIP LOCKED. The DELETE repeats the condition: a
-- rival may have taken an expired row over meanwhile. rowlock_wake_many() is called once,
-- after the last row is marked as deleted.

/* rowlock:release_many */
WITH wanted AS MATERIALIZED (
    SELECT w.n, l.name, l.slot, l.owner, l.token, l.xmax <> '0'::pg_catalog.xid AS doubtful
      FROM unnest({name}::text[], {slot}::bigint[], {owner}::text[], {token}::bigint[])
           WITH ORDINALITY AS w (name, slot, owner, token, n)
      JOIN rowlock_locks l ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner
           AND l.token = w.token
), suspect AS MATERIALIZED (
    SELECT w.n FROM wanted w JOIN rowlock_locks l ON l.name = w.name AND l.slot = w.slot
     WHERE w.doubtful FOR UPDATE OF l SKIP LOCKED
), gone AS (
    DELETE FROM rowlock_locks l USING wanted w
     WHERE l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
       AND (NOT w.doubtful OR w.n IN (SELECT n FROM suspect))
    RETURNING w.n, l.name, l.ttl
), woken AS MATERIALIZED (
    SELECT rowlock_wake_many(pg_catalog.array_agg(name))
           AND (pg_catalog.max(ttl) > 60000000 OR rowlock_relax()) AS done
      FROM gone
)
SELECT g.n, o.done FROM gone g CROSS JOIN woken o
UNION ALL
SELECT -w.n, false FROM wanted w WHERE w.n NOT IN (SELECT n FROM gone)
