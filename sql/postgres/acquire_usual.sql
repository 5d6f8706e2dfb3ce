-- Grant the lock exclusively, or say who holds it exclusively and write nothing; leave all else to acquire.
--
-- $1 name  $2 owner  $3 attempt  $4 ttl  $5 host  $6 pid  $7 program  $8 note
-- columns: as acquire; a token that is 0: what stands is of another kind, ask acquire. Nothing was written then,
-- unless a race was lost.
--
-- For claims that stand in no queue. A statement costs what is planned in it, used or not: here that is one row of
-- one table. Whether others wait is for rowlock_grant_usual() (schema.sql), which is called where no row stands.

/* rowlock:acquire_usual */
SELECT CASE WHEN l.name IS NULL THEN
            rowlock_grant_usual($1::text, $2::text, $3::bigint, $4::bigint, $5::text, $6::bigint, $7::text,
                                $8::text, c.now)
            WHEN l.expires <= c.now OR l.owner = $2::text THEN 0::bigint END,
       CASE WHEN l.expires > c.now THEN false END, l.xmax <> '0'::pg_catalog.xid, false, l.name, l.slot, l.permits,
       l.owner, l.token, l.acquired, l.expires, l.ttl, l.renewals, l.host, l.pid, l.program, l.note, c.now
  FROM (SELECT (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint AS now) c
  LEFT JOIN rowlock_locks l ON l.name = $1::text AND l.slot = 0
