-- Removes the tickets of dead waiters: their leases have run out.
--
-- {limit} tickets at most
-- rows deleted
--
-- Atomic: one DELETE.

/* rowlock:sweep_waiters */
DELETE FROM rowlock_waiters WHERE (name, ticket, request) IN (
    SELECT name, ticket, request FROM rowlock_waiters
     WHERE expires <= {clock} LIMIT {limit})
