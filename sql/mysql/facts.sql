-- What rowlock_check() wants to know of the server.
--
-- ? database  ? ? ? ? our four tables  ? database  ? the table of locks
-- ? database  ? ? ? the procedures that grant, renew and stand in line  ? database  ? ? ? ? the tables that they write to
-- columns: server, read_only, now, innodb_flush_log_at_trx_commit, engines (of our tables, distinct),
-- type of rowlock_locks.name, may_lock (those procedures are there and this user may call them, and read, insert and
-- update what they do; whether it may delete too is shown for no table: the driver has statements prepared), reads_only
-- (it may neither insert nor update). The isolation has another name on each server: the driver asks SHOW.

/* rowlock:facts */
SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), VERSION()),
       @@global.read_only,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       @@global.innodb_flush_log_at_trx_commit,
       (SELECT GROUP_CONCAT(DISTINCT ENGINE) FROM information_schema.TABLES t
         WHERE t.TABLE_SCHEMA = ? AND t.TABLE_NAME IN (?, ?, ?, ?)),
       (SELECT DATA_TYPE FROM information_schema.COLUMNS c
         WHERE c.TABLE_SCHEMA = ? AND c.TABLE_NAME = ? AND c.COLUMN_NAME = 'name'),
       (SELECT COUNT(*) = 3 FROM information_schema.ROUTINES r
         WHERE r.ROUTINE_SCHEMA = ? AND r.ROUTINE_NAME IN (?, ?, ?)) AND m.whole = 4,
       m.some = 0
  FROM (SELECT COUNT(IF(c.PRIVILEGES LIKE '%select,insert,update%', 1, NULL)) AS whole,
               COUNT(IF(c.PRIVILEGES REGEXP 'insert|update', 1, NULL)) AS some
          FROM information_schema.COLUMNS c
         WHERE c.TABLE_SCHEMA = ? AND c.TABLE_NAME IN (?, ?, ?, ?) AND c.ORDINAL_POSITION = 1) m
