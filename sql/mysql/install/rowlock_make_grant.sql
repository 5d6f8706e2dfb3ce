-- Makes the grant that rowlock_decide has found possible. p_token NULL: another client was faster,
-- and nothing is written. It waits for no lock of another transaction: it locks token row and lock
-- rows with SKIP LOCKED. p_stands, p_last: as rowlock_decide has read them.
--
-- It begins a transaction and ends it. With p_joins 1 or 3 it sets a savepoint in the transaction
-- that is there instead. It sets it before anything can fail: to go back to the savepoint of an
-- earlier call would undo too much. If it fails, or one of the procedures that it calls, it goes
-- back there.
--
-- At SERIALIZABLE the plain read of rowlock_make_room would lock, and wait. Inside the caller's
-- transaction it makes no locking read of a row that may be missing: that would lock the gap until
-- the caller's transaction ends. For ROW_COUNT() see interrupted.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_make_grant(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_request BIGINT, p_ttl BIGINT,
    p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255),
    p_ticket BIGINT, p_joins INT, p_stands INT, p_last BIGINT,
    INOUT p_others INT, OUT p_now BIGINT, OUT p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_newest INT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    -- Another client's row is there now, and has the key.
    DECLARE CONTINUE HANDLER FOR 1062 SET p_token = NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN CALL rowlock_undo_grant(p_joins); RESIGNAL; END;

    IF p_joins IN (1, 3) THEN
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
    IF p_token IS NULL AND p_joins <> 3 AND (p_joins = 0 OR p_last IS NULL) THEN
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
        IF ROW_COUNT() <> 1 THEN {interrupted}; END IF;
        IF p_ticket <> 0 THEN
            DELETE FROM rowlock_waiters
             WHERE name = p_name AND ticket = p_ticket AND request = p_request;
        END IF;
        IF p_joins = 0 THEN
            COMMIT;
        END IF;
    END IF;
END;
