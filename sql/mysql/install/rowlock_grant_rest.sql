-- Decides the requests of a batch that rowlock_grant_many has not granted, one after the other, and
-- answers for all. p_now: when it made its grants.
--
-- rowlock_decide leaves what it found in variables. The answers are made of it in the end, because
-- the client reads one result only. Without a slot there is no row to report.
CREATE PROCEDURE IF NOT EXISTS rowlock_grant_rest(
    p_requests LONGTEXT CHARACTER SET ascii, p_now BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_done INT DEFAULT 0;
    DECLARE v_found, v_rest LONGTEXT CHARACTER SET ascii DEFAULT '';
    DECLARE v_n, v_permits, v_unfair INT;
    DECLARE v_name, v_owner, v_host, v_program, v_note VARBINARY(255);
    DECLARE v_request, v_ttl, v_pid, v_ticket BIGINT;
    DECLARE rest CURSOR FOR
        SELECT w.n, UNHEX(w.name), w.permits, UNHEX(w.owner), w.request, w.ttl, UNHEX(w.host),
               w.pid, UNHEX(w.program), UNHEX(w.note), w.ticket, w.unfair
          FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
                   n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', permits INT PATH '$[1]',
                   owner VARBINARY(510) PATH '$[2]', request BIGINT PATH '$[3]',
                   ttl BIGINT PATH '$[4]', host VARBINARY(510) PATH '$[5]', pid BIGINT PATH '$[6]',
                   program VARBINARY(510) PATH '$[7]', note VARBINARY(510) PATH '$[8]',
                   ticket BIGINT PATH '$[9]', unfair INT PATH '$[10]')) w
          LEFT JOIN rowlock_locks l ON l.name = UNHEX(w.name) AND l.slot = 0
               AND l.request = w.request AND l.acquired = p_now
         WHERE l.name IS NULL ORDER BY w.n;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;

    OPEN rest;
    each_request: LOOP
        FETCH rest INTO v_n, v_name, v_permits, v_owner, v_request, v_ttl, v_host, v_pid, v_program,
                        v_note, v_ticket, v_unfair;
        IF v_done THEN
            LEAVE each_request;
        END IF;
        CALL rowlock_decide(v_name, v_permits, v_owner, v_request, v_ttl, v_host, v_pid, v_program,
                            v_note, v_ticket, v_unfair, 3);
        SET v_rest = CONCAT(v_rest, ',', v_n),
            v_found = CONCAT(v_found, ',[', v_n, ',"', HEX(v_name), '",', v_permits, ',"',
                             HEX(v_owner), '",', v_request, @rlk_found, ']');
    END LOOP;
    CLOSE rest;
    SELECT f.n, f.token, l.request = f.request AND l.owner = UNHEX(f.owner), NULL, f.behind, f.now,
           l.name, l.slot, l.permits, l.owner, l.token, l.acquired, l.expires, l.ttl, l.renewals,
           l.host, l.pid, l.program, l.note
      FROM JSON_TABLE(CONCAT('[', SUBSTR(v_found, 2), ']'), '$[*]' COLUMNS (
               n INT PATH '$[0]', name VARBINARY(510) PATH '$[1]', permits INT PATH '$[2]',
               owner VARBINARY(510) PATH '$[3]', request BIGINT PATH '$[4]',
               token BIGINT PATH '$[5]', behind INT PATH '$[6]', now BIGINT PATH '$[7]',
               others INT PATH '$[8]', slot BIGINT PATH '$[9]')) f
      LEFT JOIN rowlock_locks l ON l.name = UNHEX(f.name) AND l.slot = f.slot
           AND l.expires > f.now AND (l.owner <> UNHEX(f.owner) OR l.request = f.request)
           AND (f.permits = 0 OR l.slot = 0 OR l.permits <> f.permits OR l.request = f.request
                OR (f.permits > 0 AND f.others >= f.permits))
     WHERE l.name IS NOT NULL OR f.slot IS NULL
     UNION ALL
    SELECT w.n, l.token, NULL, NULL, 0, p_now, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           NULL, NULL, NULL, NULL
      FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (
               n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', request BIGINT PATH '$[3]')) w
      STRAIGHT_JOIN rowlock_locks l ON l.name = UNHEX(w.name) AND l.slot = 0
           AND l.request = w.request
     WHERE NOT FIND_IN_SET(w.n, v_rest);
END;
