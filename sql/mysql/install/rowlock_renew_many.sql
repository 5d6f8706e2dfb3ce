-- See renew_many.sql, and rowlock_renew_all for the form of the statements. A row that was not
-- renewed now has an older lease.
CREATE PROCEDURE IF NOT EXISTS rowlock_renew_many(p_leases LONGTEXT CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT {clock};
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    UPDATE (
        SELECT l.name, l.slot, IF(w.ttl > 0, w.ttl, l.ttl) AS ttl
          FROM (SELECT UNHEX(j.name) AS name, j.slot, UNHEX(j.owner) AS owner, j.token, j.ttl
                  FROM JSON_TABLE(p_leases, '$[*]' COLUMNS (
                           name VARBINARY(510) PATH '$[0]', slot BIGINT PATH '$[1]',
                           owner VARBINARY(510) PATH '$[2]', token BIGINT PATH '$[3]',
                           ttl BIGINT PATH '$[4]')) j) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
             ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
         LIMIT 1000000 FOR UPDATE SKIP LOCKED) mine
      STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = mine.name
          AND l.slot = mine.slot
       SET l.lapsed = GREATEST(0, v_now - l.expires), l.expires = v_now + mine.ttl,
           l.ttl = mine.ttl, l.renewals = l.renewals + 1;
    SELECT IF(l.expires - l.ttl >= v_now, w.n, -w.n), l.expires, l.lapsed, v_now
      FROM JSON_TABLE(p_leases, '$[*]' COLUMNS (
               n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', slot BIGINT PATH '$[1]',
               owner VARBINARY(510) PATH '$[2]', token BIGINT PATH '$[3]')) w
      STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
         ON l.name = UNHEX(w.name) AND l.slot = w.slot AND l.owner = UNHEX(w.owner)
             AND l.token = w.token;
    COMMIT;
END;
