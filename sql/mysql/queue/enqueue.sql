-- Joins the queue: takes a ticket, or extends the lease of the ticket that this request has.
--
-- {name}  {permits}  {owner}  {request}  {lease} of the ticket  {ticket}, 0: none yet  {host}
-- {pid}  {program}  {note}
-- {wakeup} the prefix of the names of wake-ups (await.sql), NULL: take none
-- columns: ticket; how many live tickets are before it; the request whose wake-up to wait for, 0:
-- none
--
-- The wake-up to wait for is one of these:
-- - that of the ticket just before ours. In a long queue it is one further ahead.
-- - that of the exclusive holder, if our ticket is the first
-- It is 0 if no other session has taken that wake-up.
--
-- Atomic: the procedure takes our wake-up, which is not part of a transaction, and writes one row.
-- After this step the waiter must look at the lock again: it may have been released before the
-- ticket was there.

/* rowlock:enqueue */
CALL rowlock_enqueue({name}, {permits}, {owner}, {request}, {lease}, {ticket}, {host}, {pid},
                     {program}, {note}, {wakeup})
