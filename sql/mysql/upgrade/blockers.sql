-- Finds who may have locked our tables: the session with the oldest InnoDB transaction. Only
-- performance_schema knows the metadata locks of a transaction, and it may be off.
--
-- columns: a description. It needs the PROCESS privilege.

/* rowlock:blockers */
SELECT CONCAT('session ', p.ID, ' of ', p.USER, '@', p.HOST, ', in a transaction for ',
              TIMESTAMPDIFF(SECOND, t.trx_started, NOW()), ' s')
  FROM information_schema.INNODB_TRX t
  JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
 WHERE p.ID <> CONNECTION_ID()
 ORDER BY t.trx_started
 LIMIT 1
