-- Stand in line: take a ticket, or keep the one that this attempt has for another while.
--
-- ?1 name  ?2 permits  ?3 owner  ?4 attempt  ?5 lease of the ticket  ?6 bell: the address of our socket, '': none
-- ?7 host  ?8 pid  ?9 program  ?10 note
-- columns of the last statement: ticket; how many live ones are before it
--
-- Atomic: the driver runs these in one IMMEDIATE transaction. Whoever has taken a ticket must look at the lock
-- again: it may have been released before the ticket was there.

/* rowlock:enqueue */
INSERT INTO rowlock_waiters (name, ticket, attempt, permits, owner, since, expires, bell, host, pid, program, note)
SELECT ?1, max(now, (SELECT coalesce(max(ticket), 0) + 1 FROM rowlock_waiters WHERE name = ?1)), ?4, ?2, ?3, now,
       now + ?5, ?6, ?7, ?8, ?9, ?10
  FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now)
 WHERE NOT EXISTS (SELECT 1 FROM rowlock_waiters WHERE name = ?1 AND attempt = ?4);

UPDATE rowlock_waiters
   SET expires = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 + ?5, bell = ?6
 WHERE name = ?1 AND attempt = ?4;

SELECT m.ticket, (SELECT count(*) FROM rowlock_waiters w
                   WHERE w.name = ?1 AND (w.ticket, w.attempt) < (m.ticket, m.attempt)
                     AND w.expires > CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
  FROM rowlock_waiters m WHERE m.name = ?1 AND m.attempt = ?4
