-- Who may have our tables locked: the session with the oldest transaction of InnoDB. Which locks a
-- transaction has on definitions of tables, only performance_schema knows, which may be off.
--
-- columns: in words. It needs the PROCESS privilege.

/* rowlock:blockers */
SELECT CONCAT('session ', p.ID, ' of ', p.USER, '@', p.HOST, ', in a transaction for ',
              TIMESTAMPDIFF(SECOND, t.trx_started, NOW()), ' s')
  FROM information_schema.INNODB_TRX t
  JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
 WHERE p.ID <> CONNECTION_ID()
 ORDER BY t.trx_started
 LIMIT 1
