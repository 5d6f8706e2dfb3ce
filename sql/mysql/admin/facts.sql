-- Asks what rowlock_check() reports about the server.
--
-- columns: those of sql/README.md, without those about replication. For those the driver uses SHOW.
-- may_lock: the procedures are there, and this user may call them, and may read, insert and update
-- what they do.
--
-- - The server does not show whether a user may delete from a table. So the driver prepares a
--   DELETE.
-- - Our steps do not rely on earlier reads of their transaction, so any isolation level is fine.
-- - The variable of the isolation level has another name on each server.

/* rowlock:facts */
SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), VERSION()), {clock},
       CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF'),
       LOWER(REPLACE(/*!80000 @@transaction_isolation */ /*M! @@tx_isolation */, '-', ' ')), 1,
       t.engines, t.engines = 'InnoDB',
       IF(n.type = 'varbinary', 'binary', n.type), n.type = 'varbinary',
       CONCAT('innodb_flush_log_at_trx_commit ', @@global.innodb_flush_log_at_trx_commit),
       @@global.innodb_flush_log_at_trx_commit = 1,
       (SELECT COUNT(*) = 3 FROM information_schema.ROUTINES r
         WHERE r.ROUTINE_SCHEMA = {schema}
           AND r.ROUTINE_NAME IN (CONCAT({prefix}, 'grant'), CONCAT({prefix}, 'renew'),
                                  CONCAT({prefix}, 'enqueue'))) AND m.whole = 4,
       m.some = 0,
       CASE WHEN VERSION() LIKE '%-google%' THEN 'Google Cloud SQL'
            WHEN VERSION() LIKE '%-azure%' THEN 'Azure'
            WHEN @@basedir LIKE '/rdsdbbin/%' THEN 'Amazon RDS or Aurora' ELSE '' END
  FROM (SELECT COALESCE(GROUP_CONCAT(DISTINCT ENGINE), '') AS engines
          FROM information_schema.TABLES t
         WHERE t.TABLE_SCHEMA = {schema}
           AND t.TABLE_NAME IN (CONCAT({prefix}, 'locks'), CONCAT({prefix}, 'waiters'),
                                CONCAT({prefix}, 'tokens'), CONCAT({prefix}, 'meta'))) t,
       (SELECT COALESCE(MAX(DATA_TYPE), '') AS type
          FROM information_schema.COLUMNS c
         WHERE c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = CONCAT({prefix}, 'locks')
               AND c.COLUMN_NAME = 'name') n,
       (SELECT COUNT(IF(c.PRIVILEGES LIKE '%select,insert,update%', 1, NULL)) AS whole,
               COUNT(IF(c.PRIVILEGES REGEXP 'insert|update', 1, NULL)) AS some
          FROM information_schema.COLUMNS c
         WHERE c.TABLE_SCHEMA = {schema}
           AND c.TABLE_NAME IN (CONCAT({prefix}, 'locks'), CONCAT({prefix}, 'waiters'),
                                CONCAT({prefix}, 'tokens'), CONCAT({prefix}, 'fences'))
           AND c.ORDINAL_POSITION = 1) m
