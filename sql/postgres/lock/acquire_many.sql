-- Tries the locks of many handles, each for itself.
--
-- {name}  {permits}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}  {ticket}
-- {unfair}: arrays of the same length
-- columns: the number of the request, from 1, and the answer of acquire.sql.
--
-- Atomic: one statement. rowlock_try() is called for each, in the order of the names. It waits for
-- no other transaction.

/* rowlock:acquire_many */
SELECT w.n, t.*
  FROM unnest({name}::text[], {permits}::integer[], {owner}::text[], {request}::bigint[],
              {ttl}::bigint[], {host}::text[], {pid}::bigint[], {program}::text[], {note}::text[],
              {ticket}::bigint[], {unfair}::boolean[])
       WITH ORDINALITY AS w (name, permits, owner, request, ttl, host, pid, program, note, ticket,
                             unfair, n)
 CROSS JOIN LATERAL rowlock_try(w.name, w.permits, w.owner, w.request, w.ttl, w.host, w.pid,
                                w.program, w.note, w.ticket, w.unfair) t
