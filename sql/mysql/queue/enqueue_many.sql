-- Joins the queues of many handles, each for itself.
--
-- {pack} requests in the order of names: a JSON array of [name, permits, owner, request, ttl, host,
-- pid, program, note, ticket, unfair, joins, lease, wakeup], texts in hexadecimal
-- columns: the number of the request, from 1, and the answer of enqueue.sql. At most 256 tickets
-- are counted. The third column is 0, because handles of a pool keep no wake-ups (await.sql).
--
-- Atomic: the procedure does it in one transaction.

/* rowlock:enqueue_many */
CALL rowlock_enqueue_many({pack})
