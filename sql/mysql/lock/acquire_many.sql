-- Grants the locks of many handles, each for itself.
--
-- {pack} requests in the order of names: a JSON array of [name, permits, owner, request, ttl, host,
-- pid, program, note, ticket, unfair, joins], texts in hexadecimal
-- {count} how many
-- columns: the number of the request, from 1, and the answer of acquire.sql. No row: in flight in
-- another transaction.
--
-- Atomic: the procedure makes the usual grants by one INSERT, and decides the other requests one by
-- one, all in one transaction. Each of these has a savepoint. It waits for no other transaction.

/* rowlock:acquire_many */
CALL rowlock_grant_many({pack}, {count})
