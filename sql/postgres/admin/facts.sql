-- Asks what rowlock_check() reports about the server.
--
-- columns: those of sql/README.md
-- may_lock: the functions are there, and this role has all privileges of a user in grants.sql.
--
-- - A server counts only the standbys that it sends to itself. A standby does not know of others.
-- - A logical subscriber is not a standby.
-- - A server that was promoted keeps its settings of a standby. Not every role may see
--   primary_conninfo.
-- - A hosted service is known by a role that it makes, Neon by the name of its safekeepers. Its
--   copies below the server are not seen.
-- - Patroni can take the standby that commits wait for out of the settings. It is seen by the name
--   of its connections, and whether it may do that is not.
-- - Any role may see the process ids of standbys, but not whether a commit waits for one.

/* rowlock:facts */
SELECT 'PostgreSQL ' || pg_catalog.current_setting('server_version'), {clock},
       pg_catalog.pg_is_in_recovery()
           OR pg_catalog.current_setting('transaction_read_only')::boolean,
       pg_catalog.current_setting('default_transaction_isolation'), false,
       CASE WHEN t.logged THEN 'logged tables' ELSE 'unlogged tables' END, t.logged,
       t.collation, t.collation IN ('C'::text, 'POSIX'::text, 'ucs_basic'::text),
       'synchronous_commit ' || s.commits || ', fsync ' || s.fsync,
       s.commits <> 'off'::text AND (s.fsync = 'on'::text OR s.neon),
       coalesce(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(
                    'rowlock_grant(text, integer, text, bigint, bigint, '
                    'text, bigint, text, text, bigint, bigint, boolean)'), 'EXECUTE'), false)
           AND may.all_of_them,
       NOT may.one_of_them, e.service,
       CASE WHEN r.standbys IS NULL THEN 'unknown: this server is a standby'
            WHEN s.neon THEN 'synchronous, safekeepers of Neon'
            WHEN r.standbys = 0::bigint THEN 'no standby is connected'
                || CASE WHEN s.waits THEN ', and commits wait for one'
                        WHEN e.slot THEN ', and a replication slot waits for one'
                        WHEN e.standby THEN ', and this server has been one' ELSE '' END
            WHEN s.waits THEN 'synchronous, standbys: ' || r.standbys::text
                || CASE WHEN NOT r.one_is_waited_for THEN ', and commits wait for another'
                        WHEN e.patroni THEN ' (does Patroni have synchronous_mode_strict?)'
                        ELSE '' END
            ELSE 'asynchronous, standbys: ' || r.standbys::text
                || CASE s.names WHEN ''::text THEN ' (no synchronous_standby_names)'
                        ELSE ' (synchronous_commit ' || s.commits || ')' END END,
       r.standbys IS NOT NULL,
       NOT s.waits AND coalesce(r.standbys <> 0::bigint, true),
       s.waits AND r.standbys IS NOT NULL AND NOT s.neon
           AND (r.standbys = 0::bigint OR NOT r.one_is_waited_for),
       coalesce(r.standbys = 0::bigint AND NOT s.neon, false),
       e.slot OR e.standby
  FROM (SELECT c.commits, c.fsync, c.names, c.names = 'walproposer'::text AS neon,
               c.names <> ''::text AND c.commits NOT IN ('off'::text, 'local'::text) AS waits
          FROM (SELECT pg_catalog.current_setting('synchronous_commit') AS commits,
                       pg_catalog.current_setting('fsync') AS fsync,
                       pg_catalog.current_setting('synchronous_standby_names') AS names) c) s,
       (SELECT coalesce((SELECT pg_catalog.bool_and(k.relpersistence = 'p')
                           FROM pg_catalog.pg_class k
                          WHERE k.oid IN ('rowlock_locks'::regclass::oid,
                                          'rowlock_waiters'::regclass::oid,
                                          'rowlock_tokens'::regclass::oid,
                                          'rowlock_meta'::regclass::oid)), false) AS logged,
               coalesce((SELECT k.collname::text FROM pg_catalog.pg_attribute a
                           JOIN pg_catalog.pg_collation k ON k.oid = a.attcollation
                          WHERE a.attrelid = 'rowlock_locks'::regclass::oid
                                AND a.attname = 'name'), '') AS collation) t,
       (SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN
                   (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication p
                     WHERE p.state IS DISTINCT FROM 'backup' AND NOT EXISTS
                           (SELECT FROM pg_catalog.pg_replication_slots l
                             WHERE l.active_pid = p.pid AND l.slot_type = 'logical')) END
               AS standbys,
               coalesce((SELECT pg_catalog.bool_or(p.sync_state IN ('sync', 'quorum'))
                           FROM pg_catalog.pg_stat_replication p), true) AS one_is_waited_for) r,
       (SELECT EXISTS (SELECT FROM pg_catalog.pg_replication_slots l
                        WHERE l.slot_type = 'physical'::text) AS slot,
               EXISTS (SELECT FROM pg_catalog.pg_settings g
                        WHERE g.name IN ('primary_conninfo'::text, 'primary_slot_name'::text)
                              AND g.setting <> ''::text) AS standby,
               EXISTS (SELECT FROM pg_catalog.pg_stat_activity a
                        WHERE a.application_name LIKE 'Patroni%'::text) AS patroni,
               coalesce((SELECT pg_catalog.max(h.service) FROM pg_catalog.pg_roles o
                           JOIN (VALUES ('rds_superuser'::name, 'Amazon RDS or Aurora'::text),
                                        ('cloudsqlsuperuser'::name, 'Google Cloud SQL'::text),
                                        ('alloydbsuperuser'::name, 'Google AlloyDB'::text),
                                        ('azure_pg_admin'::name, 'Azure'::text))
                                h (role, service) ON o.rolname = h.role), '') AS service) e,
       (SELECT pg_catalog.bool_and(h.held) AS all_of_them,
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
