-- Makes the token rows that a batch misses, in a transaction of its own. See rowlock_new_counter.
-- It leaves out a row that another transaction has made and not committed, since an insert would
-- wait for it. So it reads uncommitted rows.
CREATE PROCEDURE IF NOT EXISTS rowlock_new_counters(p_requests LONGTEXT CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT {clock};

    SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    START TRANSACTION;
    INSERT INTO rowlock_tokens (name, token, granted)
    SELECT w.name, m.token_floor, v_now
      FROM (SELECT token_floor FROM rowlock_meta WHERE id = 1 LIMIT 1 LOCK IN SHARE MODE) m
      STRAIGHT_JOIN (
           SELECT UNHEX(j.name) AS name
             FROM JSON_TABLE(p_requests, '$[*]' COLUMNS (name VARBINARY(510) PATH '$[0]')) j) w
     WHERE NOT EXISTS (SELECT 1 FROM rowlock_tokens t WHERE t.name = w.name)
    ON DUPLICATE KEY UPDATE granted = rowlock_tokens.granted;
    COMMIT;
END;
