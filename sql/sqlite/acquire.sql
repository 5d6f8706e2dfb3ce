-- Grant the lock, unless another holds it or others are first.
--
-- ?1 name  ?2 permits  ?3 owner  ?4 attempt  ?5 ttl  ?6 host  ?7 pid  ?8 program  ?9 note
-- ?10 ticket, 0: none  ?11 unfair: 1 to pass by those who stand in line
-- columns of the first statement: whether the row that stands in the way is our own earlier attempt, NULL if
-- none stands; whether others are before us; that row. Of the last: the row of the grant.
--
-- The clock counts whole milliseconds that have passed. A lease runs from the next one on, so that it is never
-- shorter than told: hence + 1000.
--
-- Atomic: the driver asks the first statement, and only if neither a row nor others stand in the way asks
-- it again in an IMMEDIATE transaction, of which a database file has one at a time, and runs the others.

/* rowlock:acquire */
SELECT l.attempt = ?4 AND l.owner = ?3, c.behind, l.name, l.slot, l.permits, l.owner, l.token, l.acquired,
       l.expires, l.ttl, l.renewals, l.host, l.pid, l.program, l.note, c.now + 1000
  FROM (SELECT now, NOT ?11 AND EXISTS (
                   SELECT 1 FROM rowlock_waiters w
                    WHERE w.name = ?1 AND w.expires > now AND (?10 = 0 OR (w.ticket, w.attempt) < (?10, ?4))
                      AND NOT EXISTS (SELECT 1 FROM rowlock_locks m
                                       WHERE m.name = ?1 AND m.owner = ?3 AND m.expires > now)) AS behind
          FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now)) c
  LEFT JOIN rowlock_locks l
    ON l.name = ?1 AND l.expires > c.now AND (l.owner <> ?3 OR l.attempt = ?4)
   AND (?2 = 0 OR l.slot = 0 OR l.permits <> ?2 OR l.attempt = ?4
        OR (?2 > 0 AND (SELECT count(*) FROM rowlock_locks o
                         WHERE o.name = ?1 AND o.expires > c.now AND o.owner <> ?3) >= ?2))
 LIMIT 1;

DELETE FROM rowlock_locks
 WHERE name = ?1 AND (owner = ?3 OR expires <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000);

INSERT INTO rowlock_tokens AS t (name, token, granted, permits)
SELECT ?1, m.token_floor + 1, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 + 1000, ?2
  FROM rowlock_meta m WHERE m.id = 1
ON CONFLICT (name) DO UPDATE SET token = t.token + 1, granted = excluded.granted, permits = excluded.permits;

INSERT INTO rowlock_locks (name, slot, permits, owner, token, attempt, acquired, expires, ttl, host, pid,
                           program, note)
SELECT ?1, CASE WHEN ?2 = 0 THEN 0 ELSE t.token END, ?2, ?3, t.token, ?4, t.granted, t.granted + ?5, ?5, ?6, ?7,
       ?8, ?9
  FROM rowlock_tokens t WHERE t.name = ?1;

DELETE FROM rowlock_waiters
 WHERE name = ?1 AND ticket <= ?10
   AND (attempt = ?4 OR expires <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000);

SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 + 1000
  FROM rowlock_locks WHERE name = ?1 AND attempt = ?4 AND owner = ?3
