-- Does this owner and token hold the lock?
--
-- $1 name  $2 slot  $3 owner  $4 token
-- columns: expires, now. No row: lost.

/* rowlock:verify */
SELECT expires, (date_part('epoch', clock_timestamp()) * 1000000)::bigint
  FROM rowlock_locks
 WHERE name = $1::text AND slot = $2::bigint AND owner = $3::text AND token = $4::bigint
