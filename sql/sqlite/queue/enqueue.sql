-- Joins the queue: takes a ticket, or extends the lease of the ticket that this request has.
--
-- {name}  {permits}  {owner}  {request}  {lease} of the ticket  {ticket}, 0: none yet  {host}
-- {pid}  {program}  {note}
-- {wakeup} the address of our socket, '': none
-- columns of the last statement: ticket; how many live tickets are before it, at most 256;
-- whether it has a wake-up
--
-- Atomic: the driver runs these in one IMMEDIATE transaction. After this step the waiter must look
-- at the lock again: it may have been released before the ticket was there.

/* rowlock:enqueue */
INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires, wakeup, host,
                             pid, program, note)
SELECT {name}, max(now, (SELECT coalesce(max(ticket), 0) + 1 FROM rowlock_waiters
                         WHERE name = {name})), {request}, {permits}, {owner}, now,
       now + {lease}, {wakeup}, {host}, {pid}, {program}, {note}
  FROM (SELECT {clock} AS now)
 WHERE NOT EXISTS (SELECT 1 FROM rowlock_waiters
                    WHERE name = {name} AND ticket >= {ticket} AND request = {request});

UPDATE rowlock_waiters
   SET expires = {clock} + {lease}, wakeup = {wakeup}
 WHERE name = {name} AND ticket >= {ticket} AND request = {request};

SELECT m.ticket, (SELECT count(*) FROM (
                      SELECT 1 FROM rowlock_waiters w
                       WHERE w.name = {name} AND (w.ticket, w.request) < (m.ticket, m.request)
                         AND w.expires > {clock} LIMIT 256)),
       {wakeup} <> ''
  FROM rowlock_waiters m
 WHERE m.name = {name} AND m.ticket >= {ticket} AND m.request = {request}
 ORDER BY m.ticket LIMIT 1
