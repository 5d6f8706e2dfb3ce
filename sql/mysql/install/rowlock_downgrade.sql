-- See downgrade.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_downgrade(
    p_name VARBINARY(255), p_owner VARBINARY(255), p_token BIGINT, p_permits INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token BIGINT;
    DECLARE v_moved INT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    SELECT token INTO v_token FROM rowlock_tokens WHERE name = p_name FOR UPDATE;
    UPDATE rowlock_locks SET slot = token, permits = p_permits
     WHERE name = p_name AND slot = 0 AND owner = p_owner AND token = p_token;
    SET v_moved = ROW_COUNT();
    IF v_moved > 0 THEN
        UPDATE rowlock_tokens SET permits = p_permits WHERE name = p_name;
    END IF;
    COMMIT;
    SELECT v_moved > 0;
END;
