-- Remove tickets of waiters that are gone: their leases are over.
--
-- ?1 tickets at most
-- rows deleted
--
-- Atomic: one DELETE.

/* rowlock:sweep_waiters */
DELETE FROM rowlock_waiters WHERE (name, ticket, attempt) IN (
    SELECT name, ticket, attempt FROM rowlock_waiters
     WHERE expires <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 LIMIT ?1)
