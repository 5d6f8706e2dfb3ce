-- Stand in line: take a ticket, or keep the one that this attempt has for another while.
--
-- {name}  {permits}  {owner}  {attempt}  {lease} of the ticket  {bell}: the channel to listen to,
-- '': none  {host}  {pid}  {program}  {note}
-- columns: ticket; how many live ones are before it; whether we listen: only those who will be the
-- first soon do
--
-- Atomic: one statement. Whoever has taken a ticket must look at the lock again: what was released
-- before the ticket was there rang for nobody. LISTEN begins with the commit, and so after the
-- ticket is seen.

/* rowlock:enqueue */
SELECT o_ticket, o_ahead, o_rung
  FROM rowlock_enqueue({name}::text, {permits}::integer, {owner}::text, {attempt}::bigint,
                       {lease}::bigint, {bell}::text, {host}::text, {pid}::bigint, {program}::text,
                           {note}::text)
