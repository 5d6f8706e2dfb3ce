-- Finds who has locked our tables: the session with the oldest transaction.
--
-- columns: a description

/* rowlock:blockers */
SELECT 'session '::text || a.pid::text || coalesce(' of '::text || a.usename::text, ''::text)
       || coalesce(' from '::text || pg_catalog.host(a.client_addr), ''::text)
       || ' ('::text || coalesce(a.application_name, ''::text)
       || '), in a transaction for '::text
       || pg_catalog.date_part('epoch'::text, pg_catalog.clock_timestamp() - a.xact_start)::bigint
          ::text
       || ' s'::text
  FROM pg_catalog.pg_stat_activity a
 WHERE a.pid <> pg_catalog.pg_backend_pid()
   AND EXISTS (SELECT FROM pg_catalog.pg_locks l
                WHERE l.pid = a.pid AND l.granted AND l.locktype = 'relation'::text
                  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d
                                     WHERE d.datname = pg_catalog.current_database())
                  AND l.relation IN ('rowlock_locks'::regclass::oid,
                                     'rowlock_waiters'::regclass::oid,
                                     'rowlock_tokens'::regclass::oid,
                                     'rowlock_fences'::regclass::oid,
                                     'rowlock_once'::regclass::oid,
                                     'rowlock_walks'::regclass::oid,
                                     'rowlock_members'::regclass::oid,
                                     'rowlock_meta'::regclass::oid))
 ORDER BY a.xact_start
 LIMIT 1
