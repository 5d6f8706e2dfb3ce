-- Does what `rowlock sweep` does, within the database. For an EVENT and for people:
--     CALL rowlock_housekeeping(30, 30);
-- p_idle_days, p_once_days: as the options --idle and --once-older-than, 1 to 36500. NULL: never.
--
-- A word in braces is the step with this name. Its parameters are the variables here. Each turn of
-- the loop is a batch, and a transaction of its own. So it must not run inside a transaction: it
-- commits it.
--
-- One run at a time: a run claims a once key for a minute, and claims it on before each batch. A
-- run that does not have the claim ends. GET_LOCK would stay behind if a query is killed in a
-- session that goes on, and other nodes of a cluster would not see it. The claim ends by itself.
CREATE PROCEDURE IF NOT EXISTS rowlock_housekeeping(p_idle_days INT, p_once_days INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_key VARBINARY(255) DEFAULT 'rowlock.housekeeping';
    DECLARE v_fingerprint, v_after VARBINARY(255) DEFAULT '';
    DECLARE v_claim BIGINT DEFAULT FLOOR(RAND() * 9000000000000000000);
    DECLARE v_ttl BIGINT DEFAULT 60000000;
    DECLARE v_until BIGINT DEFAULT {clock} + 3600000000;
    DECLARE v_slot BIGINT DEFAULT -9223372036854775808;
    DECLARE v_token, v_older BIGINT DEFAULT 0;
    DECLARE v_limit INT DEFAULT 500;
    DECLARE v_turn INT DEFAULT 1;
    DECLARE v_seen, v_gone, v_locks, v_waiters, v_keys, v_counters INT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; {once_abandon}; COMMIT; RESIGNAL; END;

    IF p_idle_days NOT BETWEEN 1 AND 36500 OR p_once_days NOT BETWEEN 1 AND 36500 THEN
        SIGNAL SQLSTATE '45000'
           SET MESSAGE_TEXT = 'both ages must be 1 to 36500 days, or NULL for never';
    END IF;
    {once_claim};
    COMMIT;
    turns: WHILE v_turn <= 5 DO
        UPDATE rowlock_once SET expires = {clock} + v_ttl
         WHERE name = v_key AND claim = v_claim AND {clock} < v_until;
        IF ROW_COUNT() = 0 THEN
            LEAVE turns;
        END IF;
        COMMIT;
        CASE v_turn
        WHEN 1 THEN
            CALL rowlock_sweep_batch(v_limit, v_after, v_slot, v_seen, v_gone);
            SET v_locks = v_locks + v_gone;
        WHEN 2 THEN
            {sweep_waiters};
            SET v_seen = ROW_COUNT(), v_waiters = v_waiters + v_seen;
        WHEN 3 THEN
            SET v_older = p_once_days * 86400000000;
            {once_sweep};
            SET v_seen = ROW_COUNT(), v_keys = v_keys + v_seen;
        WHEN 4 THEN
            CALL rowlock_fold_batch(p_idle_days * 86400000000, v_limit, 0, v_seen);
            SET v_counters = v_counters + v_seen;
        ELSE
            {swept};
            SET v_seen = 0;
        END CASE;
        COMMIT;
        SET v_turn = v_turn + (v_seen < v_limit);
    END WHILE;
    {once_abandon};
    COMMIT;
    SELECT v_locks AS locks, v_waiters AS waiters, v_keys AS once_keys, v_counters AS counters,
           v_turn > 5 AS whole;
END;
