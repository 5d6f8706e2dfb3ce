-- Removes the tickets whose leases are over before those of a batch (rowlock_enqueue_many). It
-- waits for no lock.
CREATE PROCEDURE IF NOT EXISTS rowlock_clear_queues(
    p_requests LONGTEXT CHARACTER SET ascii, p_now BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_over INT;

    SELECT COUNT(*) INTO v_over
      FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (name VARCHAR(510) PATH '$[0]')) w
      STRAIGHT_JOIN rowlock_waiters q ON q.name = UNHEX(w.name) AND q.expires <= p_now;
    IF v_over > 0 THEN
        DELETE w
          FROM (SELECT q.name, q.ticket, q.request
                  FROM (SELECT UNHEX(j.name) AS name, j.request
                          FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                                   name VARCHAR(510) PATH '$[0]',
                                   request BIGINT PATH '$[3]')) j) mine
                  STRAIGHT_JOIN rowlock_waiters t FORCE INDEX (PRIMARY)
                     ON t.name = mine.name AND t.request = mine.request
                  STRAIGHT_JOIN rowlock_waiters q FORCE INDEX (PRIMARY)
                     ON q.name = t.name AND q.ticket < t.ticket AND q.expires <= p_now
                 LIMIT 1000000 FOR UPDATE SKIP LOCKED) o
          STRAIGHT_JOIN rowlock_waiters w FORCE INDEX (PRIMARY)
             ON w.name = o.name AND w.ticket = o.ticket AND w.request = o.request;
    END IF;
END;
