-- What rowlock_check() wants to know of the server.
--
-- columns: server, isolation, read_only, now, synchronous_commit, fsync, logged (all our tables are
-- crash-safe), collation (of names), bytewise, may_lock (the function is there, and this role may
-- take locks), standbys (connected; NULL on a standby), synchronous_standby_names. Logical subscribers
-- are no standbys; of the others anybody may see the process ids.

/* rowlock:facts */
SELECT 'PostgreSQL ' || current_setting('server_version'),
       current_setting('default_transaction_isolation'),
       pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
       (date_part('epoch', clock_timestamp()) * 1000000)::bigint,
       current_setting('synchronous_commit'), current_setting('fsync'),
       (SELECT bool_and(relpersistence = 'p') FROM pg_class
         WHERE oid IN ('rowlock_locks'::regclass, 'rowlock_waiters'::regclass, 'rowlock_tokens'::regclass, 'rowlock_meta'::regclass)),
       (SELECT collname FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = 'rowlock_locks'::regclass AND a.attname = 'name'),
       (SELECT c.collname IN ('C', 'POSIX', 'ucs_basic') FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = 'rowlock_locks'::regclass AND a.attname = 'name'),
       coalesce(has_function_privilege(to_regprocedure('rowlock_grant(text, integer, text, bigint, bigint, '
                    'text, bigint, text, text, bigint, bigint, boolean)'), 'EXECUTE'), false)
           AND has_table_privilege('rowlock_locks', 'INSERT') AND has_table_privilege('rowlock_locks', 'UPDATE')
           AND has_table_privilege('rowlock_locks', 'DELETE') AND has_table_privilege('rowlock_tokens', 'INSERT')
           AND has_table_privilege('rowlock_tokens', 'UPDATE')
           AND has_table_privilege('rowlock_waiters', 'INSERT') AND has_table_privilege('rowlock_waiters', 'DELETE'),
       CASE WHEN NOT pg_is_in_recovery() THEN
           (SELECT count(*) FROM pg_stat_replication r WHERE r.state IS DISTINCT FROM 'backup' AND NOT EXISTS
               (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) END,
       current_setting('synchronous_standby_names')
