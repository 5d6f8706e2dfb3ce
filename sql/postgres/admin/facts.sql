-- What rowlock_check() wants to know of the server.
--
-- columns: server, isolation, read_only, now, synchronous_commit, fsync, logged (all our tables are
-- crash-safe), collation (of names), bytewise, may_lock (the function is there, and this role may
-- do all that a user of grants.sql may), standbys (connected; NULL on a standby),
-- synchronous_standby_names, whether one of them is waited for (NULL: this role may not know),
-- reads_only (it may write to no table of ours). Logical subscribers are no standbys; of the others
-- anybody may see the process ids.

/* rowlock:facts */
SELECT 'PostgreSQL ' || pg_catalog.current_setting('server_version'),
       pg_catalog.current_setting('default_transaction_isolation'),
       pg_catalog.pg_is_in_recovery()
           OR pg_catalog.current_setting('transaction_read_only')::boolean,
       {clock},
       pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('fsync'),
       (SELECT pg_catalog.bool_and(relpersistence = 'p') FROM pg_catalog.pg_class
         WHERE oid IN ('rowlock_locks'::regclass::oid, 'rowlock_waiters'::regclass::oid,
                       'rowlock_tokens'::regclass::oid, 'rowlock_meta'::regclass::oid)),
       (SELECT collname FROM pg_catalog.pg_attribute a
            JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = 'rowlock_locks'::regclass::oid AND a.attname = 'name'),
       (SELECT c.collname IN ('C', 'POSIX', 'ucs_basic') FROM pg_catalog.pg_attribute a
          JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
         WHERE a.attrelid = 'rowlock_locks'::regclass::oid AND a.attname = 'name'),
       coalesce(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(
                    'rowlock_grant(text, integer, text, bigint, bigint, '
                    'text, bigint, text, text, bigint, bigint, boolean)'), 'EXECUTE'), false)
           AND may.all_of_them,
       CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication r
             WHERE r.state IS DISTINCT FROM 'backup' AND NOT EXISTS
                   (SELECT FROM pg_catalog.pg_replication_slots s
                     WHERE s.active_pid = r.pid AND s.slot_type = 'logical')) END,
       pg_catalog.current_setting('synchronous_standby_names'),
       (SELECT pg_catalog.bool_or(sync_state IN ('sync', 'quorum'))
          FROM pg_catalog.pg_stat_replication),
       NOT may.one_of_them
  FROM (SELECT pg_catalog.bool_and(h.held) AS all_of_them,
               pg_catalog.bool_or(h.held AND h.privilege <> 'SELECT'::text) AS one_of_them
          FROM (SELECT p.privilege,
                       coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass(t.name)::oid,
                                                               p.privilege), false) AS held
                  FROM (VALUES ('rowlock_locks'::text, true), ('rowlock_waiters'::text, true),
                               ('rowlock_once'::text, true), ('rowlock_walks'::text, true),
                               ('rowlock_tokens'::text, false), ('rowlock_fences'::text, false))
                       t (name, deletes),
                       (VALUES ('SELECT'::text), ('INSERT'::text), ('UPDATE'::text),
                               ('DELETE'::text)) p (privilege)
                 WHERE t.deletes OR p.privilege <> 'DELETE'::text) h) may
