-- Stand in line: take a ticket, or keep the one that this request has for another while.
--
-- {name}  {permits}  {owner}  {request}  {lease} of the ticket  {ticket}, 0: none yet  {host}
-- {pid}
-- {program}  {note}  {wakeup} what the names of wakeups begin with (await.sql), NULL: keep none
-- columns: ticket; how many live ones are before it; the request whose wakeup to wait for: of the
-- one just before it (in a long line of one further on), or of the exclusive holder if it is the
-- first; 0 if there is none or no other session keeps its wakeup
--
-- Atomic: the procedure takes our wakeup, which is no part of any transaction, and writes one row.
-- Whoever has taken a ticket must look at the lock again: it may have been released before the
-- ticket was there.

/* rowlock:enqueue */
CALL rowlock_enqueue({name}, {permits}, {owner}, {request}, {lease}, {ticket}, {host}, {pid},
                     {program}, {note}, {wakeup})
