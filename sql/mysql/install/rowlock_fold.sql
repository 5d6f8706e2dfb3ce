-- See fold.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_fold(p_idle BIGINT, p_batch INT, p_dry INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_count INT;

    CALL rowlock_fold_batch(p_idle, p_batch, p_dry, v_count);
    SELECT v_count;
END;
