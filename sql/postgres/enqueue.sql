-- Stand in line: take a ticket, or keep the one that this attempt has for another while.
--
-- $1 name  $2 permits  $3 owner  $4 attempt  $5 lease of the ticket  $6 bell: the channel to listen to, '':
-- none  $7 host  $8 pid  $9 program  $10 note
-- columns: ticket; how many live ones are before it; whether we listen: only those who will be the first soon do
--
-- Atomic: one statement. Whoever has taken a ticket must look at the lock again: what was released before
-- the ticket was there rang for nobody. LISTEN begins with the commit, and so after the ticket is seen.

/* rowlock:enqueue */
SELECT o_ticket, o_ahead, o_rung
  FROM rowlock_enqueue($1::text, $2::integer, $3::text, $4::bigint, $5::bigint, $6::text, $7::text,
                       $8::bigint, $9::text, $10::text)
