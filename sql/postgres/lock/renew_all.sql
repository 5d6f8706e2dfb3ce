-- Make many leases last their ttl from now on, those of them that their owner and token still hold.
--
-- {name} names  {slot} slots  {owner} owners  {token} tokens  {ttl} ttls: arrays of the same length
-- columns: which of them, counted from 1; now. No row for those that are lost, or that
-- another transaction has locked.
--
-- Atomic: one statement. One lease that somebody has locked, such as one that is being released in
-- a transaction, shall not delay the others: a row whose xmax is set may be locked, and is locked
-- first, or passed over. To lock all of them first would take twice as long.

/* rowlock:renew_all */
WITH wanted AS MATERIALIZED (
    SELECT w.*, c.now
      FROM (SELECT {clock} AS now) c,
           unnest({name}::text[], {slot}::bigint[], {owner}::text[], {token}::bigint[],
                  {ttl}::bigint[])
           WITH ORDINALITY AS w (name, slot, owner, token, ttl, n)
), suspect AS MATERIALIZED (
    SELECT w.n
      FROM wanted w JOIN rowlock_locks l
        ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
     WHERE l.xmax <> '0'::pg_catalog.xid
       FOR NO KEY UPDATE OF l SKIP LOCKED
)
UPDATE rowlock_locks l
   SET lapsed = greatest(0, w.now - l.expires), expires = w.now + w.ttl, ttl = w.ttl,
       renewals = l.renewals + 1
  FROM wanted w
 WHERE l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
   AND (l.xmax = '0'::pg_catalog.xid OR w.n IN (SELECT n FROM suspect))
RETURNING w.n, w.now
