-- Removes the tickets of dead waiters: their leases have run out.
--
-- {limit} tickets at most
-- rows deleted
--
-- Atomic: one DELETE. It skips a ticket that its waiter is renewing. Without FORCE INDEX the server
-- may scan a small table, and wait for such a ticket.

/* rowlock:sweep_waiters */
DELETE w FROM (
    SELECT name, ticket, request FROM rowlock_waiters
     WHERE expires <= {clock} LIMIT {limit}
       FOR UPDATE SKIP LOCKED) o
  STRAIGHT_JOIN rowlock_waiters w FORCE INDEX (PRIMARY)
      ON w.name = o.name AND w.ticket = o.ticket AND w.request = o.request
