-- Joins the queue: takes a ticket, or extends the lease of the ticket that this request has. See
-- install/rowlock_enqueue.sql.
--
-- {name}  {permits}  {owner}  {request}  {lease}  {ticket}, 0: none yet  {host}  {pid}
-- {program}  {note}  {wakeup} the channel to listen to, '': none
-- columns: ticket; how many live tickets are before it, at most 256; whether this session listens.
-- Only waiters near the front listen.
--
-- Atomic: one statement. After this step the waiter must look at the lock again: a release before
-- the ticket was there woke no one. LISTEN begins with the commit, so it begins after other
-- sessions can see the ticket.

/* rowlock:enqueue */
SELECT o_ticket, o_ahead, o_woken
  FROM rowlock_enqueue({name}::text, {permits}::integer, {owner}::text, {request}::bigint,
                       {lease}::bigint, {ticket}::bigint, {wakeup}::text, {host}::text,
                       {pid}::bigint, {program}::text, {note}::text, true)
