-- Removes a grant, and moves the name's token on, which fences its holder out. Wakes the first in
-- the queue.
--
-- {name}  {token} of the grant
-- columns: the removed row. No row: there is no grant with this token.
--
-- Atomic: one statement. It waits for the token row, that is for a grant in flight or a guarded
-- transaction. Then it looks at the lock row again. It is a function so that grants.sql can give it
-- to operators only.

/* rowlock:break */
SELECT o_name, o_slot, o_permits, o_owner, o_token, o_acquired, o_expires, o_ttl, o_renewals,
       o_host, o_pid, o_program, o_note, o_now
  FROM rowlock_break({name}::text, {token}::bigint)
