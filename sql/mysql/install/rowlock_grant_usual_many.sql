-- Makes the usual grants of a batch (rowlock_grant) in one INSERT, and leaves its transaction open.
-- p_made: how many. p_now: when.
--
-- - It reads without locks which names have neither a lock row nor a waiter. It locks only token
--   rows, with SKIP LOCKED. Under READ COMMITTED it locks no gap.
-- - A rival's row that it does not see has the same key. Then the INSERT changes nothing. The same
--   holds for a second request for the name in the batch.
-- - JSON_TABLE has a derived table of its own: MySQL refuses it beside a locking clause (error
--   3569).
CREATE PROCEDURE IF NOT EXISTS rowlock_grant_usual_many(
    p_requests LONGTEXT CHARACTER SET ascii, OUT p_now BIGINT, OUT p_made INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_torn INT;
    SET p_now = {clock};
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires,
                               ttl, host, pid, program, note)
    SELECT m.name, 0, 0, m.owner, m.next, m.request, p_now, p_now + m.ttl, m.ttl, m.host, m.pid,
           m.program, m.note
      FROM (SELECT w.*, t.token + 1 AS next
              FROM (SELECT UNHEX(j.name) AS name, UNHEX(j.owner) AS owner, j.request, j.ttl,
                           UNHEX(j.host) AS host, j.pid, UNHEX(j.program) AS program,
                           UNHEX(j.note) AS note
                      FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                               name VARBINARY(510) PATH '$[0]', permits INT PATH '$[1]',
                               owner VARBINARY(510) PATH '$[2]', request BIGINT PATH '$[3]',
                               ttl BIGINT PATH '$[4]', host VARBINARY(510) PATH '$[5]',
                               pid BIGINT PATH '$[6]', program VARBINARY(510) PATH '$[7]',
                               note VARBINARY(510) PATH '$[8]')) j
                     WHERE j.permits = 0) w
              STRAIGHT_JOIN rowlock_tokens t FORCE INDEX (PRIMARY)
                 ON t.name = w.name AND t.permits = 0
             WHERE NOT EXISTS (SELECT 1 FROM rowlock_locks l WHERE l.name = w.name)
               AND NOT EXISTS (SELECT 1 FROM rowlock_waiters q WHERE q.name = w.name)
             LIMIT 1000000 FOR UPDATE SKIP LOCKED) m
    ON DUPLICATE KEY UPDATE slot = rowlock_locks.slot;
    UPDATE (
        SELECT l.name, l.token
          FROM (SELECT UNHEX(j.name) AS name, j.request
                  FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                           name VARBINARY(510) PATH '$[0]', request BIGINT PATH '$[3]')) j) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
             ON l.name = w.name AND l.slot = 0 AND l.request = w.request AND l.acquired = p_now
         LIMIT 1000000 FOR UPDATE SKIP LOCKED) made
      STRAIGHT_JOIN rowlock_tokens t FORCE INDEX (PRIMARY)
         ON t.name = made.name AND t.token < made.token
       SET t.token = made.token, t.granted = p_now;
    SET p_made = ROW_COUNT();
    IF p_made < JSON_LENGTH(p_requests) THEN
        SELECT COUNT(*) INTO v_torn
          FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                   name VARBINARY(510) PATH '$[0]', request BIGINT PATH '$[3]')) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
             ON l.name = UNHEX(w.name) AND l.slot = 0 AND l.request = w.request
                 AND l.acquired = p_now
          STRAIGHT_JOIN rowlock_tokens t FORCE INDEX (PRIMARY)
             ON t.name = l.name AND t.token < l.token;
        IF v_torn > 0 THEN {interrupted}; END IF;
    END IF;
END;
