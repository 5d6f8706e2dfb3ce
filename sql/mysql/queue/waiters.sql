-- Those who stand in line, in the order of names and tickets, a page at a time.
--
-- {name}, or NULL for all  {after} name after which the page begins
-- {ticket} after which it begins  {request} after which it begins  {limit} rows at most
-- columns: name, ticket, request, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, request, permits, owner, since, expires, host, pid, program, note,
       {clock}
  FROM rowlock_waiters
 WHERE ({name} IS NULL OR name = {name}) AND name >= {after}
   AND (name > {after} OR ticket > {ticket} OR (ticket = {ticket} AND request > {request}))
 ORDER BY name, ticket, request LIMIT {limit}
