-- Joins the queues of many handles, each for itself.
--
-- {name}  {permits}  {owner}  {request}  {lease}  {ticket}  {wakeup}  {host}  {pid}  {program}
-- {note}: arrays of the same length
-- columns: the number of the request, from 1, and the answer of enqueue.sql.
--
-- Atomic: one statement, in the order of the names.

/* rowlock:enqueue_many */
SELECT w.n, e.o_ticket, e.o_ahead, e.o_woken
  FROM unnest({name}::text[], {permits}::integer[], {owner}::text[], {request}::bigint[],
              {lease}::bigint[], {ticket}::bigint[], {wakeup}::text[], {host}::text[],
              {pid}::bigint[], {program}::text[], {note}::text[])
       WITH ORDINALITY AS w (name, permits, owner, request, lease, ticket, wakeup, host, pid,
                             program, note, n)
 CROSS JOIN LATERAL rowlock_enqueue(w.name, w.permits, w.owner, w.request, w.lease, w.ticket,
                                    w.wakeup, w.host, w.pid, w.program, w.note, false) e
