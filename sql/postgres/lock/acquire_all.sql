-- Grants several locks, all or none.
--
-- {name} names, in their order  {owner} owners  {request} requests  {ticket} tickets, 0: none.
-- These four are arrays of the same length.
-- {permits}  {ttl}  {host}  {pid}  {program}  {note}  {unfair}
-- columns: the number of the lock, from 1; its token; now. Or one row without a token, and nothing
-- was written. That lock is held, or others are before us in its queue, or another transaction has
-- it in progress.
--
-- Atomic: one statement.

/* rowlock:acquire_all */
SELECT o_n, o_token, o_now
  FROM rowlock_grant_all({name}::text[], {owner}::text[], {request}::bigint[], {ticket}::bigint[],
                         {permits}::integer, {ttl}::bigint, {host}::text, {pid}::bigint,
                             {program}::text, {note}::text, {unfair}::boolean)
