-- Grant the lock, or say who holds it or that others are first, and write nothing.
--
-- $1 name  $2 permits  $3 owner  $4 attempt  $5 ttl  $6 host  $7 pid  $8 program  $9 note
-- $10 ticket, 0: none  $11 unfair: pass by those who stand in line
-- columns: the token granted, or NULL; whether the row that stands in the way is our own earlier
-- attempt, NULL if none stands; whether somebody is changing what keeps us out; whether others are before us
-- in the line; the row that was found. Neither a token nor a row nor others: in flight in another
-- transaction. A grant's row is not read back: it is what was asked for, from now on.
--
-- Atomic: one statement is one transaction. A held lock is answered by a read: CASE does not call
-- rowlock_grant() then. What that does is decided again under the name's token row, never by what was read
-- here; but who is first in line is read here only, by rowlock_look() (schema.sql), which is not called where
-- nobody has the lock and nobody waits for it: OFFSET 0 keeps the planner from calling it first.

/* rowlock:acquire */
SELECT CASE WHEN o_name IS NULL AND o_first_leaves IS NULL THEN
            rowlock_grant($1::text, $2::integer, $3::text, $4::bigint, $5::bigint, $6::text, $7::bigint,
                          $8::text, $9::text, $10::bigint, c.now, c.stands) END,
       o_ours, coalesce(o_changing, o_first_leaves), o_first_leaves IS NOT NULL, o_name, o_slot, o_permits,
       o_owner, o_token, o_acquired, o_expires, o_ttl, o_renewals, o_host, o_pid, o_program, o_note, c.now
  FROM (SELECT (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint AS now,
               EXISTS (SELECT FROM rowlock_locks l WHERE l.name = $1::text) AS stands,
               EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = $1::text) AS awaited OFFSET 0) c
  LEFT JOIN LATERAL (
       SELECT * FROM rowlock_look($1::text, $2::integer, $3::text, $4::bigint, $10::bigint, $11::boolean, c.now)
        WHERE c.stands OR c.awaited OFFSET 0) f ON true
