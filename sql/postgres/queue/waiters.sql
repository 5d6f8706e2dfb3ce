-- Lists waiters in the order of names and tickets, a page at a time.
--
-- {name}, or NULL for all  {limit} rows at most
-- {after} name, {ticket} and {request}: the page begins behind them
-- columns: name, ticket, request, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, request, permits, owner, since, expires, host, pid, program, note,
       {clock}
  FROM rowlock_waiters
 WHERE ({name}::text IS NULL OR name = {name}::text)
   AND (name, ticket, request) > ({after}::text, {ticket}::bigint, {request}::bigint)
 ORDER BY name, ticket, request LIMIT {limit}::bigint
