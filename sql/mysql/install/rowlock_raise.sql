-- See raise.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_raise(p_by BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_floor, v_highest BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    SELECT token_floor INTO v_floor FROM rowlock_meta WHERE id = 1 FOR UPDATE;
    SELECT COALESCE(MAX(token), 0) INTO v_highest FROM rowlock_tokens FOR UPDATE;
    SET v_floor = GREATEST(v_floor, v_highest) + p_by;
    UPDATE rowlock_meta SET token_floor = v_floor WHERE id = 1;
    UPDATE rowlock_tokens SET token = v_floor, fenced = v_floor;
    IF (SELECT token_floor FROM rowlock_meta WHERE id = 1) < v_floor
       OR EXISTS (SELECT * FROM rowlock_tokens WHERE fenced < v_floor) THEN
        {interrupted};
    END IF;
    COMMIT;
    SELECT v_floor;
END;
