-- Grant several locks, all or none.
--
-- $1 names, in their order  $2 owners  $3 attempts  $4 tickets (0: none): arrays of the same length
-- $5 permits  $6 ttl  $7 host  $8 pid  $9 program  $10 note  $11 unfair
-- columns: which of them, counted from 1; its token; expires; now. Or one row without a token: that one is held,
-- others are before us in its line, or another transaction is at it, and nothing was written.
--
-- Atomic: one statement.

/* rowlock:acquire_all */
SELECT o_n, o_token, o_expires, o_now
  FROM rowlock_grant_all($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::integer, $6::bigint,
                         $7::text, $8::bigint, $9::text, $10::text, $11::boolean)
