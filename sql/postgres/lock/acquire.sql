-- Grants the lock. Or reports its holder, or that others are first, and writes nothing.
--
-- {name}  {permits}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- {ticket}, 0: none  {unfair}: passes the waiters
-- columns: the answer of a try (sql/README.md). No token, no row and not behind: in flight in
-- another transaction. A new grant's row is not read back.
--
-- Atomic: one statement is one transaction.
-- - A held lock is answered by a read. CASE then does not call rowlock_grant().
-- - rowlock_grant() decides again under a lock of the name's token row. It does not rely on what
--   was read here.
-- - The order of the queue is read here only, by rowlock_look().
-- - rowlock_look() is not called if the name has no lock row and no waiter. OFFSET 0 keeps the
--   planner from calling it first.

/* rowlock:acquire */
SELECT CASE WHEN o_name IS NULL AND o_first_leaves IS NULL THEN
            rowlock_grant({name}::text, {permits}::integer, {owner}::text, {request}::bigint,
                          {ttl}::bigint, {host}::text, {pid}::bigint, {program}::text, {note}::text,
                              {ticket}::bigint,
                          c.now, c.stands) END,
       o_ours, coalesce(o_changing, o_first_leaves), o_first_leaves IS NOT NULL, c.now, o_name,
           o_slot,
       o_permits, o_owner, o_token, o_acquired, o_expires, o_ttl, o_renewals, o_host, o_pid,
           o_program, o_note
  FROM (SELECT {clock} AS now,
               EXISTS (SELECT FROM rowlock_locks l WHERE l.name = {name}::text) AS stands,
               EXISTS (SELECT FROM rowlock_waiters w WHERE w.name
                       = {name}::text) AS awaited OFFSET 0) c
  LEFT JOIN LATERAL (
       SELECT * FROM rowlock_look({name}::text, {permits}::integer, {owner}::text,
                                  {request}::bigint, {ticket}::bigint, {unfair}::boolean, c.now)
        WHERE c.stands OR c.awaited OFFSET 0) f ON true
