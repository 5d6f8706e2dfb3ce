-- Who holds the lock, as acquire would say it, by a plain read.
--
-- $1 name  $2 slot  $3 owner  $4 attempt
-- columns: the row. No row: nobody who would keep us out.

/* rowlock:probe */
SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note, now
  FROM rowlock_locks, (SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS now) c
 WHERE name = $1::text AND slot = $2::integer AND expires > now AND (owner <> $3::text OR attempt = $4::bigint)
