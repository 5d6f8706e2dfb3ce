-- Grant the lock, or say who holds it and write nothing.
--
-- $1 name  $2 slot  $3 owner  $4 attempt  $5 ttl  $6 host  $7 pid  $8 program  $9 note
-- columns: the token granted, or NULL; whether the row that stands in the way is our own earlier
-- attempt, NULL if none stands; the row that was found. Both NULL: in flight in another transaction. A
-- grant's row is not read back: it is what was asked for, from now on.
--
-- Atomic: one statement is one transaction. A held lock is answered by a read: CASE does not call the
-- function then. What the function does is decided again under the name's token row, never by what was
-- read here.

/* rowlock:acquire */
SELECT CASE WHEN NOT stands THEN
            rowlock_grant($1::text, $2::integer, $3::text, $4::bigint, $5::bigint, $6::text,
                          $7::bigint, $8::text, $9::text, now, name IS NOT NULL) END,
       CASE WHEN stands THEN attempt = $4::bigint AND owner = $3::text END,
       name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note, now
  FROM (SELECT l.*, c.now,
               (l.expires > c.now AND (l.owner <> $3::text OR l.attempt = $4::bigint)) IS TRUE AS stands
          FROM (SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS now) c
          LEFT JOIN rowlock_locks l ON l.name = $1::text AND l.slot = $2::integer) found
