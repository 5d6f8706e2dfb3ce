-- See enqueue.sql. Takes a ticket, or extends the lease of the ticket that this request has.
--
-- It takes the wake-up before the ticket, so a session that sees the ticket finds the wake-up
-- taken. It takes the wake-up only once, since user-level locks are counted. A server may refuse
-- user-level locks (Galera).
CREATE PROCEDURE IF NOT EXISTS rowlock_enqueue(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_request BIGINT, p_lease BIGINT,
    p_ticket BIGINT, p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255),
    p_note VARBINARY(255), p_wakeups VARCHAR(48) CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT {clock};
    DECLARE v_ticket, v_ahead, v_over, v_before BIGINT DEFAULT 0;
    DECLARE v_wakeup VARCHAR(64) CHARACTER SET ascii
            DEFAULT CONCAT(p_wakeups, LPAD(HEX(p_request), 16, '0'));
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    IF v_wakeup IS NOT NULL THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
            IF IFNULL(IS_USED_LOCK(v_wakeup), 0) <> CONNECTION_ID() THEN
                DO GET_LOCK(v_wakeup, 0);
            END IF;
        END;
    END IF;
    IF p_ticket <> 0 THEN
        UPDATE rowlock_waiters SET expires = v_now + p_lease + (expires = v_now + p_lease)
         WHERE name = p_name AND ticket = p_ticket AND request = p_request;
        IF ROW_COUNT() > 0 THEN
            SET v_ticket = p_ticket;
        END IF;
    ELSE
        SELECT ticket INTO v_ticket FROM rowlock_waiters
         WHERE name = p_name AND request = p_request LIMIT 1;
    END IF;
    IF v_ticket = 0 THEN
        SELECT GREATEST(v_now, IFNULL(MAX(ticket), 0) + 1) INTO v_ticket FROM rowlock_waiters
         WHERE name = p_name;
        INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires, host,
                                     pid, program, note)
        VALUES (p_name, v_ticket, p_request, p_permits, p_owner, v_now, v_now + p_lease, p_host,
                p_pid, p_program, p_note);
    END IF;
    SELECT IFNULL(SUM(expires > v_now), 0), IFNULL(SUM(expires <= v_now), 0) INTO v_ahead, v_over
      FROM rowlock_waiters
     WHERE name = p_name AND (ticket < v_ticket OR (ticket = v_ticket AND request < p_request));
    IF v_over > 0 THEN
        DELETE w FROM (
            SELECT name, ticket, request FROM rowlock_waiters
             WHERE name = p_name AND ticket < v_ticket AND expires <= v_now LIMIT 1000000
               FOR UPDATE SKIP LOCKED) o
          STRAIGHT_JOIN rowlock_waiters w FORCE INDEX (PRIMARY)
             ON w.name = o.name AND w.ticket = o.ticket AND w.request = o.request;
    END IF;
    IF v_wakeup IS NOT NULL THEN
        CALL rowlock_wakeup_before(p_name, p_request, v_ticket, v_ahead, v_now, p_wakeups,
                                   v_before);
    END IF;
    SELECT v_ticket, v_ahead, v_before;
END;
