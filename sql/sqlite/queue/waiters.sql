-- Lists waiters in the order of names and tickets, a page at a time.
--
-- {name}, or NULL for all  {limit} rows at most
-- {after} name, {ticket} and {request}: the page begins behind them
-- columns: name, ticket, request, permits, owner, since, expires, host, pid, program, note, now
--
-- SQLite looks in one plan for all values. So the name is a range of the key: every blob is above
-- every text.

/* rowlock:waiters */
SELECT name, ticket, request, permits, owner, since, expires, host, pid, program, note,
       {clock}
  FROM rowlock_waiters
 WHERE name >= coalesce({name}, {after}) AND name <= coalesce({name}, x'')
   AND (name > {after} OR (ticket, request) > ({ticket}, {request}))
 ORDER BY name, ticket, request LIMIT {limit}
