-- Lets go of a bell, and of a grant before it: see ring.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_ring(
    p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), p_token BIGINT,
    p_bell VARCHAR(64) CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_gone INT DEFAULT 0;

    IF p_name IS NOT NULL THEN
        DELETE FROM rowlock_locks WHERE name = p_name AND slot = p_slot AND owner = p_owner
            AND token = p_token;
        SET v_gone = ROW_COUNT();
    END IF;
    DO RELEASE_LOCK(p_bell);
    SELECT v_gone;
END;
