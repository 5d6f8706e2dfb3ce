-- Remove tickets of waiters that are gone: their leases are over.
--
-- ? tickets at most
-- rows deleted
--
-- Atomic: one DELETE. A ticket that its waiter is renewing at this moment is passed over.

/* rowlock:sweep_waiters */
DELETE w FROM (
    SELECT name, ticket, attempt FROM rowlock_waiters
     WHERE expires <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) LIMIT ?
       FOR UPDATE SKIP LOCKED) o
  STRAIGHT_JOIN rowlock_waiters w ON w.name = o.name AND w.ticket = o.ticket AND w.attempt = o.attempt
