-- Finds what a member of a quorum that forgot must know: tokens must be higher, and leases over.
--
-- columns: the highest token ever granted here, of all names; what is left of the longest lease;
-- for how many seconds the server runs, or more than it needs
--
-- A plain read.

/* rowlock:highest */
SELECT greatest(m.token_floor, (SELECT pg_catalog.max(t.token) FROM rowlock_tokens t)),
       greatest(0, (SELECT pg_catalog.max(l.expires) FROM rowlock_locks l) - {clock}), 3600::bigint
  FROM rowlock_meta m WHERE m.id = 1
