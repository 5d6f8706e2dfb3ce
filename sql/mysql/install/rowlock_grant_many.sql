-- See acquire_many.sql. Where not all can be granted at once (rowlock_grant_at_once, on MariaDB),
-- rowlock_grant_usual_many makes the usual grants, and rowlock_grant_rest decides all other
-- requests. New counters are made in a transaction of their own. Then the batch begins again.
--
-- It reads the rows before COMMIT. After it a break or a sweep may remove one of them.
CREATE PROCEDURE IF NOT EXISTS rowlock_grant_many(
    p_requests LONGTEXT CHARACTER SET ascii, p_count INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
requests: BEGIN
    DECLARE v_now BIGINT;
    DECLARE v_made, v_missing INT DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    /*M! CALL rowlock_grant_at_once(p_requests, p_count, v_made);
    IF v_made = p_count THEN
        LEAVE requests;
    END IF; */
    CALL rowlock_grant_usual_many(p_requests, v_now, v_made);
    IF v_made < p_count THEN
        SELECT COUNT(*) INTO v_missing
          FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (name VARBINARY(510) PATH '$[0]')) w
          LEFT JOIN rowlock_tokens t ON t.name = UNHEX(w.name) WHERE t.name IS NULL;
        IF v_missing > 0 THEN
            ROLLBACK;
            CALL rowlock_new_counters(p_requests);
            CALL rowlock_grant_usual_many(p_requests, v_now, v_made);
        END IF;
    END IF;
    IF v_made < p_count THEN
        CALL rowlock_grant_rest(p_requests, v_now);
    ELSE
        SELECT w.n, l.token, NULL, NULL, 0, v_now
          FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                   n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', request BIGINT PATH '$[3]')) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
             ON l.name = UNHEX(w.name) AND l.slot = 0 AND l.request = w.request;
    END IF;
    COMMIT;
END;
