-- What rowlock_check() wants to know of the server.
--
-- columns: server, isolation, read_only, now, synchronous_commit, fsync, logged (all our tables are
-- crash-safe), collation (of names), bytewise, may_lock (the function is there, and this role may
-- take locks), standbys (connected; NULL on a standby), synchronous_standby_names, whether one of them is
-- waited for (NULL: this role may not know). Logical subscribers
-- are no standbys; of the others anybody may see the process ids.

/* rowlock:facts */
SELECT 'PostgreSQL ' || pg_catalog.current_setting('server_version'),
       pg_catalog.current_setting('default_transaction_isolation'),
       pg_catalog.pg_is_in_recovery() OR pg_catalog.current_setting('transaction_read_only')::boolean,
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint,
       pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('fsync'),
       (SELECT pg_catalog.bool_and(relpersistence = 'p') FROM pg_catalog.pg_class
         WHERE oid IN ('rowlock_locks'::regclass::oid, 'rowlock_waiters'::regclass::oid, 'rowlock_tokens'::regclass::oid,
                       'rowlock_meta'::regclass::oid)),
       (SELECT collname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = 'rowlock_locks'::regclass::oid AND a.attname = 'name'),
       (SELECT c.collname IN ('C', 'POSIX', 'ucs_basic') FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = 'rowlock_locks'::regclass::oid AND a.attname = 'name'),
       coalesce(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure('rowlock_grant(text, integer, text, bigint, bigint, '
                    'text, bigint, text, text, bigint, bigint, boolean)'), 'EXECUTE'), false)
           AND pg_catalog.has_table_privilege('rowlock_locks', 'INSERT') AND pg_catalog.has_table_privilege('rowlock_locks', 'UPDATE')
           AND pg_catalog.has_table_privilege('rowlock_locks', 'DELETE') AND pg_catalog.has_table_privilege('rowlock_tokens', 'INSERT')
           AND pg_catalog.has_table_privilege('rowlock_tokens', 'UPDATE')
           AND pg_catalog.has_table_privilege('rowlock_waiters', 'INSERT') AND pg_catalog.has_table_privilege('rowlock_waiters', 'DELETE'),
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication r WHERE r.state IS DISTINCT FROM 'backup' AND NOT EXISTS
               (SELECT FROM pg_catalog.pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) END,
       pg_catalog.current_setting('synchronous_standby_names'),
       (SELECT pg_catalog.bool_or(sync_state IN ('sync', 'quorum')) FROM pg_catalog.pg_stat_replication)
