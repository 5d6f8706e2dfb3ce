-- See acquire.sql. Decides what rowlock_grant leaves to it. It grants the lock. Or it reports which
-- grant keeps the request out, or that others are first, and writes nothing. It reads without
-- locks, and rowlock_make_grant writes.
--
-- p_ticket: the waiter's ticket, which ends with the grant; 0: none.
-- p_joins:
-- - 0: the grant is a transaction
-- - 1: the grant is part of the caller's transaction
-- - 2: one of several names in the transaction of rowlock_grant_all, which finds the token in
--   @rlk_token
-- - 3: one of many requests in the transaction of rowlock_grant_many. @rlk_found gets what was
--   found: token, whether others are first, the time, how many others hold the lock, and the slot
--   of the row to report. NULL is written as null.
-- v_stands: 2 a grant keeps this request out, 1 the name has other rows, 0 no row.
-- v_own: the owner holds the lock already, so it does not queue.
-- v_slot: of the row to report. If the exclusive row is there, it is the only one.
CREATE PROCEDURE IF NOT EXISTS rowlock_decide(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_request BIGINT, p_ttl BIGINT,
    p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255),
    p_ticket BIGINT, p_unfair INT, p_joins INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_stands, v_behind, v_own, v_newest, v_others INT DEFAULT 0;
    DECLARE v_slot BIGINT DEFAULT 0;
    DECLARE v_last, v_first, v_token BIGINT;
    DECLARE v_now BIGINT DEFAULT {clock};
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    SELECT t.token, t.permits,
           IF(l.slot IS NULL, 0,
              IF(l.expires > v_now AND (l.owner <> p_owner OR l.request = p_request), 2, 1)),
           IFNULL(l.expires > v_now AND l.owner = p_owner, 0),
           (SELECT MIN(ticket) FROM rowlock_waiters WHERE name = p_name)
      INTO v_last, v_newest, v_stands, v_own, v_first
      FROM rowlock_tokens t LEFT JOIN rowlock_locks l ON l.name = p_name AND l.slot = 0
     WHERE t.name = p_name;
    IF v_last IS NULL THEN
        -- A name without a counter may have a queue.
        SELECT MIN(ticket) INTO v_first FROM rowlock_waiters WHERE name = p_name;
    END IF;
    IF v_newest <> 0 AND v_stands = 0 THEN
        CALL rowlock_look_beside(p_name, p_permits, p_owner, p_request, v_now,
                                 v_stands, v_others, v_own, v_slot);
    END IF;
    IF v_first <= IF(p_ticket = 0, v_first, p_ticket) AND NOT p_unfair AND NOT v_own
       AND (v_stands < 2 OR p_ticket > 0) THEN
        SELECT 1 INTO v_behind FROM rowlock_waiters
         WHERE name = p_name AND ticket <= IF(p_ticket = 0, 9223372036854775807, p_ticket)
           AND expires > v_now AND (p_ticket = 0 OR ticket < p_ticket OR request < p_request)
         LIMIT 1;
    END IF;
    IF v_stands < 2 AND NOT v_behind AND (p_permits <= 0 OR v_others < p_permits) THEN
        CALL rowlock_make_grant(p_name, p_permits, p_owner, p_request, p_ttl, p_host, p_pid,
                                p_program, p_note, p_ticket, p_joins, v_stands, v_last,
                                v_others, v_now, v_token);
    END IF;
    IF p_joins = 2 THEN
        SET @rlk_token = v_token;
    ELSEIF p_joins = 3 THEN
        SET @rlk_found = CONCAT_WS(
            ',', '', IFNULL(v_token, 'null'), v_behind, IFNULL(v_now, {clock}), v_others,
            IF(v_token IS NOT NULL OR (v_behind AND v_stands < 2
               AND (p_permits <= 0 OR v_others < p_permits)), 'null', v_slot));
    ELSEIF v_token IS NOT NULL
           OR (v_behind AND v_stands < 2 AND (p_permits <= 0 OR v_others < p_permits)) THEN
        SELECT v_token, NULL, NULL, v_behind, v_now;
    ELSE
        SELECT NULL, request = p_request AND owner = p_owner, NULL, v_behind, {clock}, name, slot,
               permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note
          FROM rowlock_locks
         WHERE name = p_name AND slot = v_slot AND expires > {clock}
           AND (owner <> p_owner OR request = p_request)
           AND (p_permits = 0 OR slot = 0 OR permits <> p_permits OR request = p_request
                OR (p_permits > 0 AND v_others >= p_permits));
    END IF;
END;
