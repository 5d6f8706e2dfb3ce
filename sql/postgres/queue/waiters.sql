-- Those who stand in line, in the order of names and tickets, a page at a time.
--
-- {name}, or NULL for all  {after} name, {ticket} and {request} after which the page begins
-- {limit} rows at most
-- columns: name, ticket, request, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, request, permits, owner, since, expires, host, pid, program, note,
       {clock}
  FROM rowlock_waiters
 WHERE ({name}::text IS NULL OR name = {name}::text)
   AND (name, ticket, request) > ({after}::text, {ticket}::bigint, {request}::bigint)
 ORDER BY name, ticket, request LIMIT {limit}::bigint
