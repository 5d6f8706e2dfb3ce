-- See guard.sql. p_changes 1: changes the token row at the end, because other nodes do not see our
-- row locks.
--
-- The plain read is as old as the caller's snapshot. If its token is not the newest, the lock row
-- is share-locked instead. That keeps the lease from being renewed until the caller's transaction
-- ends. The same happens if the token row is changed: a plain read would see our own change, and
-- would not show how old the snapshot is.
CREATE PROCEDURE IF NOT EXISTS rowlock_guard(
    p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), p_token BIGINT, p_changes INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token, v_seen, v_fenced BIGINT;
    DECLARE v_stands INT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    IF p_changes THEN
        SELECT token, fenced INTO v_token, v_fenced FROM rowlock_tokens WHERE name = p_name
         FOR UPDATE;
    ELSE
        SELECT token, fenced INTO v_token, v_fenced FROM rowlock_tokens WHERE name = p_name
         LOCK IN SHARE MODE;
    END IF;
    IF v_token = p_token THEN
        SET v_stands = 1;
    ELSEIF p_slot <> 0 AND p_token > v_fenced THEN
        SELECT token INTO v_seen FROM rowlock_tokens WHERE name = p_name;
        IF v_seen = v_token AND NOT p_changes THEN
            SELECT 1 INTO v_stands FROM rowlock_locks
             WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token;
        ELSE
            SELECT 1 INTO v_stands FROM rowlock_locks
             WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token
                 LOCK IN SHARE MODE;
        END IF;
    END IF;
    IF p_changes AND v_stands THEN
        UPDATE rowlock_tokens SET guards = guards + 1 WHERE name = p_name;
        IF ROW_COUNT() <> 1 THEN {interrupted}; END IF;
    END IF;
    SELECT v_token, v_stands;
END;
