-- See withdraw.sql and retract.sql. Removes the grant of one request. p_token: unless it was
-- renewed, or has a higher token; NULL: in any case.
CREATE PROCEDURE IF NOT EXISTS rowlock_withdraw(p_name VARBINARY(255), p_owner VARBINARY(255),
                                                p_request BIGINT, p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token, v_slot BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    SELECT token INTO v_token FROM rowlock_tokens WHERE name = p_name LOCK IN SHARE MODE;
    SELECT slot INTO v_slot FROM rowlock_locks
     WHERE name = p_name AND owner = p_owner AND request = p_request LIMIT 1;
    DELETE FROM rowlock_locks WHERE name = p_name AND slot = v_slot AND owner = p_owner
        AND request = p_request AND (p_token IS NULL OR (renewals = 0 AND token <= p_token));
    SELECT ROW_COUNT();
END;
