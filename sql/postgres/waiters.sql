-- Those who stand in line, in the order of names and tickets, a page at a time.
--
-- $1 name, or NULL for all  $2 name, $3 ticket and $4 attempt after which the page begins  $5 rows at most
-- columns: name, ticket, attempt, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, attempt, permits, owner, since, expires, host, pid, program, note,
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
  FROM rowlock_waiters
 WHERE ($1::text IS NULL OR name = $1::text)
   AND (name, ticket, attempt) > ($2::text, $3::bigint, $4::bigint)
 ORDER BY name, ticket, attempt LIMIT $5::bigint
