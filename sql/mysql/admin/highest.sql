-- Finds what a member of a quorum that forgot must know: tokens must be higher, and leases over.
--
-- columns: the highest token ever granted here, of all names; what is left of the longest lease;
-- for how many seconds the server runs (a file has none: 0); how long it must run to tell its start
-- from an earlier one
--
-- A plain read.

/* rowlock:highest */
SELECT GREATEST(m.token_floor, COALESCE((SELECT MAX(t.token) FROM rowlock_tokens t), 0)),
       GREATEST(0, COALESCE((SELECT MAX(l.expires) FROM rowlock_locks l), 0) - {clock}),
       (SELECT CAST(VARIABLE_VALUE AS SIGNED)
          FROM /*!80000 performance_schema.global_status */ /*M! information_schema.GLOBAL_STATUS */
         WHERE VARIABLE_NAME = 'Uptime'), 10
  FROM rowlock_meta m WHERE m.id = 1
