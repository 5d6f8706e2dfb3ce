-- A page of rows whose lease has been over for $3, in key order: what a sweep would remove.
--
-- $1 name and $2 slot after which the page begins  $3 older  $4 rows at most
-- columns: the row

/* rowlock:expired */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note, now
  FROM rowlock_locks, (SELECT (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint AS now) c
 WHERE (name, slot) > ($1::text, $2::bigint) AND expires <= now - $3::bigint
 ORDER BY name, slot LIMIT $4::bigint
