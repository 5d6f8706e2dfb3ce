-- Does this owner and token hold the lock?
--
-- $1 name  $2 slot  $3 owner  $4 token
-- columns: expires, now. No row: lost.

/* rowlock:verify */
SELECT expires, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
  FROM rowlock_locks
 WHERE name = $1::text AND slot = $2::bigint AND owner = $3::text AND token = $4::bigint
