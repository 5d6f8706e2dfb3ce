-- The answer of rowlock_enqueue_many: the tickets of a batch, and how many are before each, at most
-- 256. p_now: their leases were extended at that moment.
--
-- MariaDB 10.11 takes no subquery in the columns of a derived table that it merges. LIMIT keeps it
-- from that.
CREATE PROCEDURE IF NOT EXISTS rowlock_places(
    p_requests LONGTEXT CHARACTER SET ascii, p_now BIGINT)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT IF(q.expires = p_now + w.lease OR q.ticket <> w.ticket, w.n, -w.n), IFNULL(q.ticket, 0),
           CAST(IFNULL(t.ahead, 256) AS SIGNED), 0
      FROM (SELECT v.*, IFNULL((SELECT q.ticket FROM rowlock_waiters q
                                 WHERE q.name = v.name AND q.ticket = v.ticket
                                       AND q.request = v.request),
                               (SELECT q.ticket FROM rowlock_waiters q
                                 WHERE q.name = v.name AND q.request = v.request
                                 ORDER BY q.ticket DESC LIMIT 1)) AS has
              FROM (SELECT j.n, UNHEX(j.name) AS name, j.request, j.ticket, j.lease
                      FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                               n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]',
                               request BIGINT PATH '$[3]', ticket BIGINT PATH '$[9]',
                               lease BIGINT PATH '$[12]')) j LIMIT 1000000) v LIMIT 1000000) w
      LEFT JOIN rowlock_waiters q ON q.name = w.name AND q.ticket = w.has AND q.request = w.request
      LEFT JOIN (
           SELECT q.name, q.ticket, q.request,
                  IFNULL(SUM(q.expires > p_now) OVER (
                      PARTITION BY q.name ORDER BY q.ticket, q.request
                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS ahead
             FROM (SELECT v.name,
                          (SELECT q.ticket FROM rowlock_waiters q
                            WHERE q.name = v.name AND q.expires > p_now
                            ORDER BY q.ticket LIMIT 256, 1) AS far
                     FROM (SELECT DISTINCT UNHEX(j.name) AS name
                             FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                                      name VARBINARY(510) PATH '$[0]')) j) v LIMIT 1000000) d
             STRAIGHT_JOIN rowlock_waiters q FORCE INDEX (PRIMARY)
                ON q.name = d.name AND (d.far IS NULL OR q.ticket < d.far)) t
        ON t.name = q.name AND t.ticket = q.ticket AND t.request = q.request;
END;
