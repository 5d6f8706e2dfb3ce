-- Locks the token row of a name that rowlock_make_grant could not lock. Makes the row if it is
-- missing. p_token NULL: another transaction has locked it. p_last NULL: it was missing.
--
-- The row is made in a transaction of its own, so it is not locked uncommitted for long. Inside the
-- caller's transaction (p_joins) it stays uncommitted. Only another first grant of the same name
-- waits for it then.
CREATE PROCEDURE IF NOT EXISTS rowlock_new_counter(
    p_name VARBINARY(255), p_permits INT, p_joins INT,
    INOUT p_last BIGINT, OUT p_newest INT, OUT p_now BIGINT, OUT p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    IF NOT p_joins THEN
        -- If the row is missing, COMMIT releases the gap where it would be. The next read is
        -- uncommitted, because an insert would wait for another transaction's insert of the row.
        -- It is a SELECT INTO, because inside an IF it would be a locking read, and wait too.
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
        START TRANSACTION;
        SELECT token INTO p_last FROM rowlock_tokens WHERE name = p_name;
        COMMIT;
    END IF;
    IF p_last IS NULL THEN
        INSERT INTO rowlock_tokens (name, token, granted)
        SELECT p_name, token_floor, {clock} FROM rowlock_meta WHERE id = 1 LOCK IN SHARE MODE
        ON DUPLICATE KEY UPDATE granted = rowlock_tokens.granted;
        IF p_joins THEN
            -- It stays NULL if another client made the row after the caller's snapshot.
            SELECT token INTO p_last FROM rowlock_tokens WHERE name = p_name;
        END IF;
    END IF;
    IF NOT p_joins THEN
        IF p_permits <> 0 THEN
            SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
        END IF;
        START TRANSACTION;
    END IF;
    SELECT token + 1, permits, {clock} INTO p_token, p_newest, p_now
      FROM rowlock_tokens WHERE name = p_name FOR UPDATE SKIP LOCKED;
END;
