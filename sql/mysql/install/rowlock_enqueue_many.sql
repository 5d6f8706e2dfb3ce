-- See enqueue_many.sql. Takes tickets, or extends the leases of those that are there. Tickets of a
-- batch for one name are in the order of the batch. Removes tickets whose leases are over.
--
-- Each waiter asks again and again, so the cost must not grow with the queue. Only a request
-- without a ticket looks through it: the answer to its first attempt may be lost. At most 256
-- tickets are counted.
--
-- A ticket that another transaction has locked keeps its lease. Only its own request and a sweep
-- lock it.
CREATE PROCEDURE IF NOT EXISTS rowlock_enqueue_many(p_requests LONGTEXT CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT {clock};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    UPDATE (
        SELECT q.name, q.ticket, q.request, w.lease
          FROM (SELECT UNHEX(j.name) AS name, j.request, j.ticket, j.lease
                  FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                           name VARBINARY(510) PATH '$[0]', request BIGINT PATH '$[3]',
                           ticket BIGINT PATH '$[9]', lease BIGINT PATH '$[12]')) j
                 WHERE j.ticket <> 0) w
          STRAIGHT_JOIN rowlock_waiters q FORCE INDEX (PRIMARY)
             ON q.name = w.name AND q.ticket = w.ticket AND q.request = w.request
         LIMIT 1000000 FOR UPDATE SKIP LOCKED) mine
      STRAIGHT_JOIN rowlock_waiters q FORCE INDEX (PRIMARY)
         ON q.name = mine.name AND q.ticket = mine.ticket AND q.request = mine.request
       SET q.expires = v_now + mine.lease;
    INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires, host, pid,
                                 program, note)
    SELECT w.name,
           GREATEST(v_now, IFNULL((SELECT q.ticket FROM rowlock_waiters q WHERE q.name = w.name
                                    ORDER BY q.ticket DESC LIMIT 1), 0) + 1) + w.n - 1,
           w.request, w.permits, w.owner, v_now, v_now + w.lease, w.host, w.pid, w.program, w.note
      FROM (SELECT j.n, UNHEX(j.name) AS name, j.permits, UNHEX(j.owner) AS owner, j.request,
                   UNHEX(j.host) AS host, j.pid, UNHEX(j.program) AS program,
                   UNHEX(j.note) AS note, j.ticket, j.lease
              FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                       n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', permits INT PATH '$[1]',
                       owner VARBINARY(510) PATH '$[2]', request BIGINT PATH '$[3]',
                       host VARBINARY(510) PATH '$[5]', pid BIGINT PATH '$[6]',
                       program VARBINARY(510) PATH '$[7]', note VARBINARY(510) PATH '$[8]',
                       ticket BIGINT PATH '$[9]', lease BIGINT PATH '$[12]')) j) w
     WHERE CASE w.ticket
           WHEN 0 THEN NOT EXISTS (SELECT 1 FROM rowlock_waiters q
                                    WHERE q.name = w.name AND q.request = w.request)
           ELSE NOT EXISTS (SELECT 1 FROM rowlock_waiters q WHERE q.name = w.name
                             AND q.ticket = w.ticket AND q.request = w.request) END;
    CALL rowlock_places(p_requests, v_now);
    CALL rowlock_clear_queues(p_requests, v_now);
    COMMIT;
END;
