-- Grant the lock, or say who holds it or that others are first, and write nothing.
--
-- {name}  {permits}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- {ticket}, 0: none  {unfair}: pass by those who stand in line
-- columns: the answer of a try (sql/README.md). Neither a token nor a row nor others before us: in
-- flight in another transaction. A grant's row is not read back: it is what was asked for, from now
-- on.
--
-- Atomic: one statement is one transaction. A held lock is answered by a read: CASE does not call
-- rowlock_grant() then. What that does is decided again under the name's token row, never by what
-- was read here; but who is first in line is read here only, by rowlock_look(), which is not called
-- where nobody has the lock and nobody waits for it: OFFSET 0 keeps the planner from calling it
-- first.

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
