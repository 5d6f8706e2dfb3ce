-- Makes the grant that rowlock_decide has seen to be possible. p_token NULL: another was faster,
-- and nothing is written. Waits for no lock that a transaction keeps: token row and lock rows are
-- taken with SKIP LOCKED. It begins the transaction and ends it, or sets a savepoint in the
-- caller's (p_joins 1): before anything can fail, since one of an earlier call would take with it
-- what came since. It goes back when something fails, in the parts that it calls too. p_stands,
-- p_last: as rowlock_decide has read them.
--
-- At SERIALIZABLE the plain read of rowlock_make_room would lock, and wait. Inside the caller's
-- transaction there is no locking read of what may not be there: it would keep the gap locked until
-- the caller ends.
CREATE PROCEDURE IF NOT EXISTS rowlock_make_grant(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_request BIGINT, p_ttl BIGINT,
    p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255),
    p_ticket BIGINT, p_joins INT, p_stands INT, p_last BIGINT,
    INOUT p_others INT, OUT p_now BIGINT, OUT p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_newest INT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    -- A rival's row stands by now: its key is in the way.
    DECLARE CONTINUE HANDLER FOR 1062 SET p_token = NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN CALL rowlock_undo_grant(p_joins); RESIGNAL; END;

    IF p_joins = 1 THEN
        SAVEPOINT before_grant;
    ELSEIF p_joins = 0 THEN
        IF p_permits <> 0 THEN
            SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
        END IF;
        START TRANSACTION;
    END IF;
    IF p_joins = 0 OR p_last IS NOT NULL THEN
        SELECT token + 1, permits, {clock} INTO p_token, v_newest, p_now
          FROM rowlock_tokens WHERE name = p_name FOR UPDATE SKIP LOCKED;
    END IF;
    IF p_token IS NULL AND (p_joins = 0 OR p_last IS NULL) THEN
        CALL rowlock_new_counter(p_name, p_permits, p_joins, p_last, v_newest, p_now, p_token);
    END IF;
    IF p_token IS NOT NULL AND (p_permits <> 0 OR v_newest <> 0 OR p_stands <> 0) THEN
        CALL rowlock_make_room(p_name, p_permits, p_owner, p_joins, p_last, p_now, p_others,
                               p_token);
    END IF;
    IF p_token IS NOT NULL THEN
        INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires,
                                   ttl, host, pid, program, note)
        VALUES (p_name, IF(p_permits = 0, 0, p_token), p_permits, p_owner, p_token, p_request,
                p_now, p_now + p_ttl, p_ttl, p_host, p_pid, p_program, p_note);
    END IF;
    IF p_token IS NULL THEN
        CALL rowlock_undo_grant(p_joins);
    ELSE
        UPDATE rowlock_tokens SET token = p_token, granted = p_now, permits = p_permits
         WHERE name = p_name;
        IF p_ticket <> 0 THEN
            DELETE FROM rowlock_waiters
             WHERE name = p_name AND ticket = p_ticket AND request = p_request;
        END IF;
        IF p_joins = 0 THEN
            COMMIT;
        END IF;
    END IF;
END;
