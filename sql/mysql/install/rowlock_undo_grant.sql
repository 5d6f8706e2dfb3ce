-- Goes back to where rowlock_make_grant began. What it had removed stands again.
CREATE PROCEDURE IF NOT EXISTS rowlock_undo_grant(p_joins INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    -- A deadlock has rolled the caller's transaction back, savepoint and all.
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;

    IF p_joins = 0 THEN
        ROLLBACK;
    ELSEIF p_joins = 1 THEN
        ROLLBACK TO SAVEPOINT before_grant;
    END IF;
END;
