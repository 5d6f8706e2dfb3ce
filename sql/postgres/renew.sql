-- Make the lease last $5 from now on, if this owner and token still hold it. Never inserts.
--
-- $1 name  $2 slot  $3 owner  $4 token  $5 ttl, or 0: as long as before
-- columns: expires, lapsed (how long the lease had run out; 0: in time), now. No row: lost.
--
-- Atomic: one UPDATE of one row by its key. After a wait for the row its WHERE and its clock are
-- evaluated again. The row always changes, so no driver can mistake "unchanged" for "not found".

/* rowlock:renew */
UPDATE rowlock_locks
   SET lapsed = greatest(0, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint - expires),
       expires = (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
                 + CASE WHEN $5::bigint > 0 THEN $5::bigint ELSE ttl END,
       ttl = CASE WHEN $5::bigint > 0 THEN $5::bigint ELSE ttl END, renewals = renewals + 1
 WHERE name = $1::text AND slot = $2::bigint AND owner = $3::text AND token = $4::bigint
RETURNING expires, lapsed, expires - ttl
