-- See acquire_all.sql. Grants several locks or none. The names come in order, so two calls never
-- lock them in opposite orders.
--
-- It reads the rows before COMMIT. After it a break, a sweep or the same owner elsewhere may remove
-- one of them, and the answer must still have the others.
CREATE PROCEDURE IF NOT EXISTS rowlock_grant_all(
    p_requests LONGTEXT CHARACTER SET ascii, p_count INT, p_permits INT, p_ttl BIGINT,
        p_host VARBINARY(255),
    p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255), p_unfair INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
acquire: BEGIN
    DECLARE v_n INT DEFAULT 0;
    DECLARE v_now BIGINT DEFAULT {clock};
    DECLARE v_name, v_owner VARBINARY(255);
    DECLARE v_request, v_ticket BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
    START TRANSACTION;
    WHILE v_n < p_count DO
        SET v_name = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_requests, CONCAT('$[', v_n, '][0]')))),
            v_owner = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_requests, CONCAT('$[', v_n, '][1]')))),
            v_request = JSON_EXTRACT(p_requests, CONCAT('$[', v_n, '][2]')),
            v_ticket = JSON_EXTRACT(p_requests, CONCAT('$[', v_n, '][3]')),
            v_n = v_n + 1;
        CALL rowlock_decide(v_name, p_permits, v_owner, v_request, p_ttl, p_host, p_pid, p_program,
                            p_note, v_ticket, p_unfair, 2);
        IF @rlk_token IS NULL THEN
            -- The request may be sent again, and the grant is ours then. Its grants that are gone
            -- are made again.
            SELECT token INTO @rlk_token FROM rowlock_locks
             WHERE name = v_name AND owner = v_owner AND request = v_request AND expires > v_now
                 LIMIT 1;
        END IF;
        IF @rlk_token IS NULL THEN
            ROLLBACK;
            SELECT v_n, NULL, v_now;
            LEAVE acquire;
        END IF;
    END WHILE;
    SELECT c.n, l.token, l.expires - l.ttl
      FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
               n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', owner VARBINARY(510) PATH '$[1]',
               request BIGINT PATH '$[2]')) c
      JOIN rowlock_locks l ON l.name = UNHEX(c.name) AND l.owner = UNHEX(c.owner)
          AND l.request = c.request
     ORDER BY c.n;
    COMMIT;
END;
