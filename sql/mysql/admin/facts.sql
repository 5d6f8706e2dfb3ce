-- What rowlock_check() wants to know of the server.
--
-- columns: server, read_only, now, innodb_flush_log_at_trx_commit, engines (of our tables,
-- distinct), type of rowlock_locks.name, may_lock (those procedures are there and this user may
-- call them, and read, insert and update what they do; whether it may delete too is shown for no
-- table: the driver has statements prepared), reads_only (it may neither insert nor update). The
-- isolation has another name on each server: the driver asks SHOW.

/* rowlock:facts */
SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), VERSION()),
       @@global.read_only,
       {clock},
       @@global.innodb_flush_log_at_trx_commit,
       (SELECT GROUP_CONCAT(DISTINCT ENGINE) FROM information_schema.TABLES t
         WHERE t.TABLE_SCHEMA = {schema}
           AND t.TABLE_NAME IN (CONCAT({prefix}, 'locks'), CONCAT({prefix}, 'waiters'),
                                CONCAT({prefix}, 'tokens'), CONCAT({prefix}, 'meta'))),
       (SELECT DATA_TYPE FROM information_schema.COLUMNS c
         WHERE c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = CONCAT({prefix}, 'locks')
               AND c.COLUMN_NAME = 'name'),
       (SELECT COUNT(*) = 3 FROM information_schema.ROUTINES r
         WHERE r.ROUTINE_SCHEMA = {schema}
           AND r.ROUTINE_NAME IN (CONCAT({prefix}, 'grant'), CONCAT({prefix}, 'renew'),
                                  CONCAT({prefix}, 'enqueue'))) AND m.whole = 4,
       m.some = 0
  FROM (SELECT COUNT(IF(c.PRIVILEGES LIKE '%select,insert,update%', 1, NULL)) AS whole,
               COUNT(IF(c.PRIVILEGES REGEXP 'insert|update', 1, NULL)) AS some
          FROM information_schema.COLUMNS c
         WHERE c.TABLE_SCHEMA = {schema}
           AND c.TABLE_NAME IN (CONCAT({prefix}, 'locks'), CONCAT({prefix}, 'waiters'),
                                CONCAT({prefix}, 'tokens'), CONCAT({prefix}, 'fences'))
           AND c.ORDINAL_POSITION = 1) m
