-- The grants that stand, in key order, a page at a time.
--
-- $1 name, or NULL for all  $2 name and $3 slot after which the page begins  $4 rows at most
-- columns: the row

/* rowlock:list */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
  FROM rowlock_locks
 WHERE ($1::text IS NULL OR name = $1::text) AND (name, slot) > ($2::text, $3::bigint)
 ORDER BY name, slot LIMIT $4::bigint
