-- Makes room for a grant beside the others of its name, under a lock of the token row. Removes
-- expired rows and rows of this owner. p_others: how many other owners hold the lock. p_token
-- becomes NULL in these cases:
-- - the other rows let no more grants in
-- - another transaction is changing one of the rows to remove, which may be renewed
-- - the caller's snapshot (p_joins) is older than the newest grant
--
-- It locks one row at a time by its key. A lock of a range would include rows beside it, which may
-- be of another name.
CREATE PROCEDURE IF NOT EXISTS rowlock_make_room(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_joins INT, p_last BIGINT,
    p_now BIGINT, OUT p_others INT, INOUT p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_over, v_locked, v_against INT DEFAULT 0;
    DECLARE v_one BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    SELECT IFNULL(SUM(expires <= p_now OR owner = p_owner), 0),
           IFNULL(SUM(expires > p_now AND owner <> p_owner), 0),
           IFNULL(SUM(expires > p_now AND owner <> p_owner
                      AND (p_permits = 0 OR slot = 0 OR permits <> p_permits)), 0)
      INTO v_over, p_others, v_against
      FROM rowlock_locks WHERE name = p_name;
    IF v_against > 0 OR (p_permits > 0 AND p_others >= p_permits)
       OR (p_joins AND NOT p_last + 1 <=> p_token) THEN
        SET p_token = NULL;
    END IF;
    WHILE v_over > 0 AND p_token IS NOT NULL DO
        SET v_locked = 0, v_over = v_over - 1;
        SELECT slot INTO v_one FROM rowlock_locks
         WHERE name = p_name AND (expires <= p_now OR owner = p_owner) LIMIT 1;
        SELECT 1 INTO v_locked FROM rowlock_locks
         WHERE name = p_name AND slot = v_one AND (expires <= p_now OR owner = p_owner)
           FOR UPDATE SKIP LOCKED;
        IF v_locked THEN
            DELETE FROM rowlock_locks WHERE name = p_name AND slot = v_one;
            IF ROW_COUNT() <> 1 THEN {interrupted}; END IF;
        ELSE
            SET p_token = NULL;
        END IF;
    END WHILE;
END;
