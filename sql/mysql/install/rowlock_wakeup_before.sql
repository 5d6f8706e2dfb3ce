-- Finds whose wake-up the waiter with this ticket waits for. p_before is the request of that waiter
-- or holder, 0: none. A wake-up cannot wake us if no session has taken it, or if it is our own.
--
-- Both servers report a deadlock if more than 32 sessions wait for one another in a chain. So a
-- waiter in a longer queue (p_ahead) waits for one further ahead. It asks again when that waiter's
-- turn is over.
CREATE PROCEDURE IF NOT EXISTS rowlock_wakeup_before(
    p_name VARBINARY(255), p_request BIGINT, p_ticket BIGINT, p_ahead BIGINT, p_now BIGINT,
    p_wakeups VARCHAR(48) CHARACTER SET ascii, OUT p_before BIGINT)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_skip BIGINT DEFAULT IF(p_ahead < 16, 0, p_ahead DIV 3);
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    SET p_before = 0;
    SELECT request INTO p_before FROM rowlock_waiters
     WHERE name = p_name AND expires > p_now
       AND (ticket < p_ticket OR (ticket = p_ticket AND request < p_request))
     ORDER BY ticket DESC, request DESC LIMIT v_skip, 1;
    IF p_before = 0 THEN
        SELECT request INTO p_before FROM rowlock_locks
         WHERE name = p_name AND slot = 0 AND expires > p_now;
    END IF;
    IF IFNULL(IS_USED_LOCK(CONCAT(p_wakeups, LPAD(HEX(p_before), 16, '0'))), CONNECTION_ID())
       = CONNECTION_ID() THEN
        SET p_before = 0;
    END IF;
END;
