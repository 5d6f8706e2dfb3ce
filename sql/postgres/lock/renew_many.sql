-- Renews the leases of many handles, each for itself.
--
-- {name} names  {slot} slots  {owner} owners  {token} tokens  {ttl} ttls, 0: as long as before.
-- These are arrays of the same length.
-- columns: the number of the lease, from 1, and the answer of renew.sql: expires, lapsed, now. A
-- negative number: another transaction has the row locked. No row: lost.
--
-- Atomic: one statement. See renew_all.sql.

/* rowlock:renew_many */
WITH wanted AS MATERIALIZED (
    SELECT w.n, c.now, CASE WHEN w.ttl > 0 THEN w.ttl ELSE l.ttl END AS ttl, l.name, l.slot,
           w.owner, w.token, l.xmax <> '0'::pg_catalog.xid AS doubtful
      FROM (SELECT {clock} AS now) c,
           unnest({name}::text[], {slot}::bigint[], {owner}::text[], {token}::bigint[],
                  {ttl}::bigint[])
           WITH ORDINALITY AS w (name, slot, owner, token, ttl, n)
      JOIN rowlock_locks l ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner
           AND l.token = w.token
), suspect AS MATERIALIZED (
    SELECT w.n FROM wanted w JOIN rowlock_locks l ON l.name = w.name AND l.slot = w.slot
     WHERE w.doubtful FOR NO KEY UPDATE OF l SKIP LOCKED
), renewed AS (
    UPDATE rowlock_locks l
       SET lapsed = greatest(0, w.now - l.expires), expires = w.now + w.ttl, ttl = w.ttl,
           renewals = l.renewals + 1
      FROM wanted w
     WHERE l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
       AND (NOT w.doubtful OR w.n IN (SELECT n FROM suspect))
    RETURNING w.n, l.expires, l.lapsed, w.now
)
SELECT n, expires, lapsed, now FROM renewed
UNION ALL
SELECT -w.n, 0, 0, 0 FROM wanted w WHERE w.n NOT IN (SELECT n FROM renewed)
