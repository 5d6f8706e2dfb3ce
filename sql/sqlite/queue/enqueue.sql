-- Stand in line: take a ticket, or keep the one that this attempt has for another while.
--
-- {name}  {permits}  {owner}  {attempt}  {lease} of the ticket  {bell}: the address of our socket,
-- '': none
-- {host}  {pid}  {program}  {note}
-- columns of the last statement: ticket; how many live ones are before it; whether it has a bell
--
-- Atomic: the driver runs these in one IMMEDIATE transaction. Whoever has taken a ticket must look
-- at the lock again: it may have been released before the ticket was there.

/* rowlock:enqueue */
INSERT INTO rowlock_waiters (name, ticket, attempt, permits, owner, since, expires, bell, host, pid,
                             program, note)
SELECT {name}, max(now, (SELECT coalesce(max(ticket), 0) + 1 FROM rowlock_waiters
                         WHERE name = {name})), {attempt}, {permits}, {owner}, now,
       now + {lease}, {bell}, {host}, {pid}, {program}, {note}
  FROM (SELECT {clock} AS now)
 WHERE NOT EXISTS (SELECT 1 FROM rowlock_waiters WHERE name = {name} AND attempt = {attempt});

UPDATE rowlock_waiters
   SET expires = {clock} + {lease}, bell = {bell}
 WHERE name = {name} AND attempt = {attempt};

SELECT m.ticket, (SELECT count(*) FROM rowlock_waiters w
                   WHERE w.name = {name} AND (w.ticket, w.attempt) < (m.ticket, m.attempt)
                     AND w.expires > {clock}),
       {bell} <> ''
  FROM rowlock_waiters m WHERE m.name = {name} AND m.attempt = {attempt}
