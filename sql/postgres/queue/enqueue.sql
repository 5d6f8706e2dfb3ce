-- Stand in line: take a ticket, or keep the one that this request has for another while.
--
-- {name}  {permits}  {owner}  {request}  {lease} of the ticket  {wakeup}: the channel to listen to,
-- '': none  {host}  {pid}  {program}  {note}
-- columns: ticket; how many live ones are before it; whether we listen: only those who will be the
-- first soon do
--
-- Atomic: one statement. Whoever has taken a ticket must look at the lock again: what was released
-- before the ticket was there woke for nobody. LISTEN begins with the commit, and so after the
-- ticket is seen.

/* rowlock:enqueue */
SELECT o_ticket, o_ahead, o_woken
  FROM rowlock_enqueue({name}::text, {permits}::integer, {owner}::text, {request}::bigint,
                       {lease}::bigint, {wakeup}::text, {host}::text, {pid}::bigint,
                       {program}::text, {note}::text)
