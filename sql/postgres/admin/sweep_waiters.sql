-- Removes the tickets of dead waiters: their leases have run out.
--
-- {limit} tickets at most
-- rows deleted
--
-- Atomic: one statement. It skips a ticket that its waiter is renewing.

/* rowlock:sweep_waiters */
WITH over AS MATERIALIZED (
    SELECT name, ticket, request FROM rowlock_waiters
     WHERE expires <= {clock}
     LIMIT {limit}::bigint FOR UPDATE SKIP LOCKED
)
DELETE FROM rowlock_waiters w USING over o
 WHERE w.name = o.name AND w.ticket = o.ticket AND w.request = o.request
