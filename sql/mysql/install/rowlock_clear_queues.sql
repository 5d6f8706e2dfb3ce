-- Removes the tickets whose leases are over from the queues of a batch (rowlock_enqueue_many). It
-- waits for no lock.
CREATE PROCEDURE IF NOT EXISTS rowlock_clear_queues(
    p_requests LONGTEXT CHARACTER SET ascii, p_now BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_over INT;

    SELECT COUNT(*) INTO v_over
      FROM (SELECT DISTINCT UNHEX(j.name) AS name
              FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (name VARBINARY(510) PATH '$[0]')) j) mine
      STRAIGHT_JOIN rowlock_waiters q ON q.name = mine.name AND q.expires <= p_now;
    IF v_over > 0 THEN
        DELETE w
          FROM (SELECT q.name, q.ticket, q.request
                  FROM (SELECT DISTINCT UNHEX(j.name) AS name
                          FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                                   name VARBINARY(510) PATH '$[0]')) j) mine
                  STRAIGHT_JOIN rowlock_waiters q FORCE INDEX (PRIMARY)
                     ON q.name = mine.name AND q.expires <= p_now
                 LIMIT 1000000 FOR UPDATE SKIP LOCKED) o
          STRAIGHT_JOIN rowlock_waiters w FORCE INDEX (PRIMARY)
             ON w.name = o.name AND w.ticket = o.ticket AND w.request = o.request;
    END IF;
END;
