-- Is anything in the way of this request: a grant of another owner, or waiters before us in the
-- queue?
--
-- {name}  {permits}  {owner}  {request}  {ticket}, 0: none  {unfair}: 1 passes the waiters
-- columns: the answer of a try. No row: nothing is in the way.
--
-- A plain read. It comes before every try, so a try on a held lock takes no write lock. It is also
-- the first statement of acquire.sql, inside that transaction.

/* rowlock:look */
SELECT NULL, CASE WHEN l.name IS NULL THEN NULL WHEN l.request = {request} THEN l.owner IS {owner}
       ELSE 0 END, NULL, c.behind, c.now + 1000, {name}, l.slot, l.permits,
       l.owner, l.token, l.acquired, l.expires, l.ttl, l.renewals, l.host, l.pid, l.program, l.note
  FROM (SELECT now, NOT {unfair} AND EXISTS (
                   SELECT 1 FROM rowlock_waiters w
                    WHERE w.name = {name} AND w.expires > now
                      AND ({ticket} = 0 OR (w.ticket, w.request) < ({ticket}, {request}))
                      AND NOT EXISTS (SELECT 1 FROM rowlock_locks m
                                       WHERE m.name = {name} AND m.owner = {owner}
                                             AND m.expires > now)) AS behind
          FROM (SELECT {clock} AS now)) c
  LEFT JOIN rowlock_locks l
    ON l.name = {name} AND l.expires > c.now AND (l.owner <> {owner} OR l.request = {request})
   AND ({permits} = 0 OR l.slot = 0 OR l.permits <> {permits} OR l.request = {request}
        OR ({permits} > 0 AND (SELECT count(*) FROM rowlock_locks o
                                WHERE o.name = {name} AND o.expires > c.now
                                      AND o.owner <> {owner}) >= {permits}))
 WHERE l.name IS NOT NULL OR c.behind
 LIMIT 1
