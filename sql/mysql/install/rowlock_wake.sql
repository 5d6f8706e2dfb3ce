-- See wake.sql. Releases a grant, if one is named, and then the wake-up.
CREATE PROCEDURE IF NOT EXISTS rowlock_wake(
    p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), p_token BIGINT,
    p_wakeup VARCHAR(64) CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_gone INT DEFAULT 0;

    IF p_name IS NOT NULL THEN
        DELETE FROM rowlock_locks WHERE name = p_name AND slot = p_slot AND owner = p_owner
            AND token = p_token;
        SET v_gone = ROW_COUNT();
    END IF;
    DO RELEASE_LOCK(p_wakeup);
    SELECT v_gone;
END;
