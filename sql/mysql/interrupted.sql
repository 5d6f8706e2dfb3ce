-- An UPDATE or DELETE in a procedure changed less than it must.
--
-- MariaDB 11.8: one that KILL QUERY or a time limit ends changes nothing, and the procedure goes on
-- as if it had. So a procedure that moves a counter, makes room or tells what is gone looks at
-- ROW_COUNT(), or at the row, and says "interrupted" (1317) itself. A single release or a sweep
-- need not: what it leaves behind ends with its lease.

SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317
