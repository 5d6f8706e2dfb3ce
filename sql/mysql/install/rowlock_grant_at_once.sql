-- Makes all grants of a batch (rowlock_grant), if each is a usual one and can be made at once.
-- p_made: how many. 0: none, and nothing was answered.
--
-- For MariaDB: with a timeout of 0 the UPDATE fails if a token row is locked. So it needs no
-- SKIP LOCKED, and costs a quarter less. MySQL has no such timeout: it does not run the comment.
--
-- - Each name is there once: an UPDATE changes a row once, and then not all are granted.
-- - A rival's lock row that the UPDATE does not see yet makes the INSERT fail.
-- - FORCE INDEX: a scan of the table would meet the locked rows of others.
CREATE PROCEDURE IF NOT EXISTS rowlock_grant_at_once(
    p_requests LONGTEXT CHARACTER SET ascii, p_count INT, OUT p_made INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    SET p_made = 0;
    /*M! BEGIN
        DECLARE v_now BIGINT DEFAULT {clock};
        DECLARE EXIT HANDLER FOR 1062, 1205 BEGIN ROLLBACK; SET p_made = 0; END;
        DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        START TRANSACTION;
        SET STATEMENT innodb_lock_wait_timeout = 0 FOR
        UPDATE JSON_TABLE(p_requests, '$[*]' COLUMNS (
                   name VARBINARY(510) PATH '$[0]', permits INT PATH '$[1]')) w
          STRAIGHT_JOIN rowlock_tokens t FORCE INDEX (PRIMARY)
             ON t.name = UNHEX(w.name) AND t.permits = 0
           SET t.token = t.token + 1, t.granted = v_now
         WHERE w.permits = 0
           AND (SELECT MIN(l.slot) FROM rowlock_locks l FORCE INDEX (PRIMARY)
                 WHERE l.name = t.name) IS NULL
           AND (SELECT MIN(q.ticket) FROM rowlock_waiters q FORCE INDEX (PRIMARY)
                 WHERE q.name = t.name) IS NULL;
        SET p_made = ROW_COUNT();
        IF p_made = p_count THEN
            INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired,
                                       expires, ttl, host, pid, program, note)
            SELECT t.name, 0, 0, UNHEX(j.owner), t.token, j.request, v_now, v_now + j.ttl, j.ttl,
                   UNHEX(j.host), j.pid, UNHEX(j.program), UNHEX(j.note)
              FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                       name VARBINARY(510) PATH '$[0]', owner VARBINARY(510) PATH '$[2]',
                       request BIGINT PATH '$[3]', ttl BIGINT PATH '$[4]',
                       host VARBINARY(510) PATH '$[5]', pid BIGINT PATH '$[6]',
                       program VARBINARY(510) PATH '$[7]', note VARBINARY(510) PATH '$[8]')) j
              STRAIGHT_JOIN rowlock_tokens t FORCE INDEX (PRIMARY) ON t.name = UNHEX(j.name);
            IF ROW_COUNT() <> p_count THEN {interrupted}; END IF;
            SELECT w.n, t.token, NULL, NULL, 0, v_now
              FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                       n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]')) w
              STRAIGHT_JOIN rowlock_tokens t FORCE INDEX (PRIMARY) ON t.name = UNHEX(w.name);
            COMMIT;
        ELSE
            ROLLBACK;
            SET p_made = 0;
        END IF;
    END; */
END;
