-- Is the exclusive grant that kept us out the last time still there? Grants the lock exclusively if
-- it has no holder.
--
-- {name}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- columns: token, expires, ttl, renewals, now. Without expires the token is that of a new grant, 0:
-- the case is another one. With expires they are those of the exclusive holder: if it is not the
-- one that we met, or has expired, acquire is called.
--
-- As acquire_usual.sql. It reads what a renewal changes: the rest of the row is known.

/* rowlock:acquire_met */
SELECT coalesce(l.token,
                rowlock_grant_usual({name}::text, {owner}::text, {request}::bigint, {ttl}::bigint,
                                    {host}::text, {pid}::bigint, {program}::text, {note}::text,
                                    c.now)),
       l.expires, l.ttl, l.renewals, c.now
  FROM (SELECT {clock} AS now) c
  LEFT JOIN rowlock_locks l ON l.name = {name}::text AND l.slot = 0
