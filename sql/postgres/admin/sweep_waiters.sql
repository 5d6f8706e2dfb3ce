-- Remove tickets of waiters that are gone: their leases are over.
--
-- {limit} tickets at most
-- rows deleted
--
-- Atomic: one statement. A ticket that its waiter is renewing at this moment is passed over.

/* rowlock:sweep_waiters */
WITH over AS MATERIALIZED (
    SELECT name, ticket, request FROM rowlock_waiters
     WHERE expires <= {clock}
     LIMIT {limit}::bigint FOR UPDATE SKIP LOCKED
)
DELETE FROM rowlock_waiters w USING over o
 WHERE w.name = o.name AND w.ticket = o.ticket AND w.request = o.request
