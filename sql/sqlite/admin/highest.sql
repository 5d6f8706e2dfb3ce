-- Finds what a member of a quorum that forgot must know: tokens must be higher, and leases over.
--
-- columns: the highest token ever granted here, of all names; what is left of the longest lease;
-- for how many seconds the server runs (a file has none: 0); how long it must run to tell its start
-- from an earlier one
--
-- A plain read.

/* rowlock:highest */
SELECT max(m.token_floor, coalesce((SELECT max(token) FROM rowlock_tokens), 0)),
       max(0, coalesce((SELECT max(expires) FROM rowlock_locks), 0) - {clock}), 0, 0
  FROM rowlock_meta m WHERE m.id = 1
