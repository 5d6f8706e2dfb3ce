-- Grant several locks, all or none.
--
-- {name} names, in their order  {owner} owners  {request} attempts  {ticket} tickets (0: none):
-- arrays of the same length
-- {permits}  {ttl}  {host}  {pid}  {program}  {note}  {unfair}
-- columns: which of them, counted from 1; its token; now. Or one row without a token: that one is
-- held, others are before us in its line, or another transaction is at it, and nothing was written.
--
-- Atomic: one statement.

/* rowlock:acquire_all */
SELECT o_n, o_token, o_now
  FROM rowlock_grant_all({name}::text[], {owner}::text[], {request}::bigint[], {ticket}::bigint[],
                         {permits}::integer, {ttl}::bigint, {host}::text, {pid}::bigint,
                             {program}::text, {note}::text, {unfair}::boolean)
