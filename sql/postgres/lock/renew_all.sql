-- Renews many leases: each lasts its ttl from now on, if its owner and token hold the lock.
--
-- {name} names  {slot} slots  {owner} owners  {token} tokens  {ttl} ttls: arrays of the same length
-- columns: the number of the lease, from 1; now. No row for a lease that is lost, or whose row
-- another transaction has locked.
--
-- Atomic: one statement. A locked row must not delay the other leases: a transaction may be
-- releasing it, for example. A row whose xmax is set may be locked. So only such rows are locked
-- first, with SKIP LOCKED. To lock all rows first would take twice as long.

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
