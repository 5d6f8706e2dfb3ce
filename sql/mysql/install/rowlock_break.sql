-- See break.sql. It waits for the token row, that is for a grant in flight or a guarded
-- transaction.
CREATE PROCEDURE IF NOT EXISTS rowlock_break(p_name VARBINARY(255), p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token BIGINT;
    DECLARE v_stands INT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    SELECT token INTO v_token FROM rowlock_tokens WHERE name = p_name FOR UPDATE;
    SELECT 1 INTO v_stands FROM rowlock_locks
     WHERE name = p_name AND slot IN (0, p_token) AND token = p_token FOR UPDATE;
    SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
           note, {clock}
      FROM rowlock_locks
     WHERE name = p_name AND slot IN (0, p_token) AND token = p_token;
    IF v_stands THEN
        DELETE FROM rowlock_locks
         WHERE name = p_name AND slot IN (0, p_token) AND token = p_token;
        IF ROW_COUNT() <> 1 THEN {interrupted}; END IF;
        UPDATE rowlock_tokens SET token = v_token + 1 WHERE name = p_name;
        IF ROW_COUNT() <> 1 THEN {interrupted}; END IF;
    END IF;
    COMMIT;
END;
