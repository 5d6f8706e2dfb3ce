-- Lists waiters in the order of names and tickets, a page at a time.
--
-- {name}, or NULL for all  {limit} rows at most
-- {after} name, {ticket} and {request}: the page begins behind them
-- columns: name, ticket, request, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, request, permits, owner, since, expires, host, pid, program, note,
       {clock}
  FROM rowlock_waiters
 WHERE ({name} IS NULL OR name = {name}) AND name >= {after}
   AND (name > {after} OR ticket > {ticket} OR (ticket = {ticket} AND request > {request}))
 ORDER BY name, ticket, request LIMIT {limit}
