-- Grant the lock, or say who holds it and write nothing.
--
-- $1 name  $2 slot  $3 owner  $4 attempt  $5 ttl  $6 host  $7 pid  $8 program  $9 note
-- columns: granted, then the row. No row, or a NULL token: in flight in another transaction.
--
-- Atomic: one statement is one transaction. A held lock is answered by the first branch, a read: the
-- one-time filter of the second keeps the function from being called at all. What the function does
-- is decided again under the name's token row, never by what was read here.

/* rowlock:acquire */
WITH clock AS MATERIALIZED (
    SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint AS now
), found AS MATERIALIZED (
    SELECT l.*, c.now, l.expires > c.now AND (l.owner <> $3::text OR l.attempt = $4::bigint) AS stands
      FROM rowlock_locks l, clock c WHERE l.name = $1::text AND l.slot = $2::integer
)
SELECT attempt = $4::bigint AND owner = $3::text, name, slot, owner, token, acquired, expires, ttl,
       renewals, host, pid, program, note, now
  FROM found WHERE stands
UNION ALL
SELECT true, $1::text, $2::integer, $3::text,
       rowlock_grant($1::text, $2::integer, $3::text, $4::bigint, $5::bigint, $6::text, $7::bigint,
                     $8::text, $9::text, now, EXISTS (SELECT FROM found)),
       now, now + $5::bigint, $5::bigint, 0, $6::text, $7::bigint, $8::text, $9::text, now
  FROM clock WHERE NOT EXISTS (SELECT FROM found WHERE stands)
