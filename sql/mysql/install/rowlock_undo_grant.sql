-- Goes back to where rowlock_make_grant began. The rows that it had removed are there again.
CREATE PROCEDURE IF NOT EXISTS rowlock_undo_grant(p_joins INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    -- After a deadlock the caller's transaction is rolled back, and the savepoint is gone.
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;

    IF p_joins = 0 THEN
        ROLLBACK;
    ELSEIF p_joins IN (1, 3) THEN
        ROLLBACK TO SAVEPOINT before_grant;
    END IF;
END;
