-- See renew_all.sql.
--
-- - The derived table with a limit takes the locks, or skips rows, before the update.
-- - FORCE INDEX: a scan of a small table would wait for rows that are not in the list.
-- - JSON_TABLE has a derived table of its own: MySQL refuses it beside a locking clause (error
--   3569).
CREATE PROCEDURE IF NOT EXISTS rowlock_renew_all(p_leases LONGTEXT CHARACTER SET ascii, p_count INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT {clock};

    UPDATE (
        SELECT l.name, l.slot, w.ttl
          FROM (SELECT UNHEX(j.name) AS name, j.slot, UNHEX(j.owner) AS owner, j.token, j.ttl
                  FROM JSON_TABLE(p_leases, '$[*]' COLUMNS (
                           slot BIGINT PATH '$[0]', token BIGINT PATH '$[1]',
                           ttl BIGINT PATH '$[2]', name VARBINARY(510) PATH '$[3]',
                           owner VARBINARY(510) PATH '$[4]')) j) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
             ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
         LIMIT 1000000 FOR UPDATE SKIP LOCKED) mine
      STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = mine.name
          AND l.slot = mine.slot
       SET l.lapsed = GREATEST(0, v_now - l.expires), l.expires = v_now + mine.ttl,
           l.ttl = mine.ttl, l.renewals = l.renewals + 1;
    IF ROW_COUNT() = p_count THEN
        SELECT 0, v_now;
    ELSE
        -- A row that was not renewed now has an older lease, or a shorter one of another call.
        SELECT w.n, v_now
          FROM JSON_TABLE(p_leases, '$[*]' COLUMNS (
                   n FOR ORDINALITY, slot BIGINT PATH '$[0]', token BIGINT PATH '$[1]',
                   ttl BIGINT PATH '$[2]', name VARBINARY(510) PATH '$[3]',
                   owner VARBINARY(510) PATH '$[4]')) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = UNHEX(w.name)
              AND l.slot = w.slot
               AND l.owner = UNHEX(w.owner) AND l.token = w.token
         WHERE l.expires - l.ttl >= v_now AND l.ttl >= w.ttl;
    END IF;
END;
