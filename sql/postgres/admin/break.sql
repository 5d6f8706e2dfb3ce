-- Take a grant away and fence its holder out by bumping the name's token.
--
-- {name}  {token} that holds it
-- columns: the row that was removed. No row: this token does not hold it. The first in line is
-- woken for.
--
-- Atomic: one statement. It waits for the token row, that is for a grant in flight or a guarded
-- transaction; then the row is looked at again. It is a function so that grants.sql can leave it to
-- those who may break.

/* rowlock:break */
SELECT o_name, o_slot, o_permits, o_owner, o_token, o_acquired, o_expires, o_ttl, o_renewals,
       o_host, o_pid, o_program, o_note, o_now
  FROM rowlock_break({name}::text, {token}::bigint)
