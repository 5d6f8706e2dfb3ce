-- Finds what a member of a quorum that forgot must know: tokens must be higher, and leases over.
--
-- columns: the highest token ever granted here, of all names; what is left of the longest lease;
-- for how many seconds the server runs (a file has none: 0); how long it must run to tell its start
-- from an earlier one
--
-- A plain read.

/* rowlock:highest */
SELECT greatest(m.token_floor, (SELECT pg_catalog.max(t.token) FROM rowlock_tokens t)),
       greatest(0, (SELECT pg_catalog.max(l.expires) FROM rowlock_locks l) - {clock}),
       pg_catalog.floor(pg_catalog.date_part('epoch'::text, pg_catalog.clock_timestamp() -
                                             pg_catalog.pg_postmaster_start_time()))::bigint,
       0::bigint
  FROM rowlock_meta m WHERE m.id = 1
