-- Grants the lock exclusively, or reports its exclusive holder and writes nothing. Leaves all other
-- cases to acquire.
--
-- {name}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- columns: the answer of a try. A token of 0: the case is another one, so acquire is called.
-- Nothing was written then, unless a race was lost.
--
-- It is for requests without a ticket. A statement costs what is planned in it, used or not. Here
-- that is one row of one table. rowlock_grant_usual() asks whether others wait. It is called only
-- if there is no lock row.

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
