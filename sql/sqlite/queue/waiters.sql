-- Those who stand in line, in the order of names and tickets, a page at a time.
--
-- {name}, or NULL for all  {after} name, {ticket} and {request} after which the page begins
-- {limit} rows at most
-- columns: name, ticket, request, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, request, permits, owner, since, expires, host, pid, program, note,
       {clock}
  FROM rowlock_waiters
 WHERE ({name} IS NULL OR name = {name}) AND (name, ticket,
                                              request) > ({after}, {ticket}, {request})
 ORDER BY name, ticket, request LIMIT {limit}
