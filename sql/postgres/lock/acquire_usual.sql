-- Grant the lock exclusively, or say who holds it exclusively and write nothing; leave all else to
-- acquire.
--
-- {name}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- columns: the answer of a try; a token that is 0: what stands is of another kind, ask acquire.
-- Nothing was written then, unless a race was lost.
--
-- For requests that stand in no queue. A statement costs what is planned in it, used or not: here
-- that is one row of one table. Whether others wait is for rowlock_grant_usual(), which is called
-- where no row stands.

/* rowlock:acquire_usual */
SELECT CASE WHEN l.name IS NULL THEN
            rowlock_grant_usual({name}::text, {owner}::text, {request}::bigint, {ttl}::bigint,
                                {host}::text, {pid}::bigint, {program}::text, {note}::text, c.now)
            WHEN l.expires <= c.now OR l.owner = {owner}::text THEN 0::bigint END,
       CASE WHEN l.expires > c.now THEN false END, l.xmax <> '0'::pg_catalog.xid, false, c.now,
           l.name, l.slot,
       l.permits, l.owner, l.token, l.acquired, l.expires, l.ttl, l.renewals, l.host, l.pid,
           l.program, l.note
  FROM (SELECT {clock} AS now) c
  LEFT JOIN rowlock_locks l ON l.name = {name}::text AND l.slot = 0
