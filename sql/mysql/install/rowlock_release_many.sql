-- See release_many.sql. Where not all can be released at once (rowlock_release_at_once, on
-- MariaDB), it locks the rows that it can have, deletes those, and answers before COMMIT. See
-- rowlock_renew_all for the form of the statements.
--
-- v_mine: the numbers of the locked rows. MariaDB cuts such a text at group_concat_max_len. A cut
-- number is that of another row. Then nothing is released.
CREATE PROCEDURE IF NOT EXISTS rowlock_release_many(
    p_grants LONGTEXT CHARACTER SET ascii, p_count INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
releases: BEGIN
    DECLARE v_count, v_length INT;
    DECLARE v_mine LONGTEXT CHARACTER SET ascii;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    /*M! CALL rowlock_release_at_once(p_grants, p_count, v_count);
    IF v_count = p_count THEN
        LEAVE releases;
    END IF; */
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    SELECT COUNT(*), JSON_ARRAYAGG(m.n), SUM(CHAR_LENGTH(m.n) + 1) INTO v_count, v_mine, v_length
      FROM (SELECT w.n
              FROM (SELECT j.n, UNHEX(j.name) AS name, j.slot, UNHEX(j.owner) AS owner, j.token
                      FROM JSON_TABLE(p_grants, '$[*]' COLUMNS (
                               n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]',
                               slot BIGINT PATH '$[1]', owner VARBINARY(510) PATH '$[2]',
                               token BIGINT PATH '$[3]')) j) w
              STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
                 ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
             LIMIT 1000000 FOR UPDATE SKIP LOCKED) m;
    SET v_mine = REPLACE(TRIM(LEADING '[' FROM TRIM(TRAILING ']' FROM v_mine)), ' ', '');
    IF CHAR_LENGTH(v_mine) + 1 <> v_length THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'group_concat_max_len is too low';
    END IF;
    DELETE l
      FROM (SELECT UNHEX(j.name) AS name, j.slot
              FROM JSON_TABLE(p_grants, '$[*]' COLUMNS (
                       n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]',
                       slot BIGINT PATH '$[1]')) j
             WHERE v_count = p_count OR FIND_IN_SET(j.n, v_mine)) w
      STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = w.name AND l.slot = w.slot;
    IF ROW_COUNT() <> v_count THEN {interrupted}; END IF;
    IF v_count = p_count THEN
        SELECT j.n, 1 FROM JSON_TABLE(p_grants, '$[*]' COLUMNS (n FOR ORDINALITY)) j;
    ELSE
        SELECT IF(FIND_IN_SET(w.n, v_mine), w.n, -w.n), 1
          FROM JSON_TABLE(p_grants, '$[*]' COLUMNS (
                   n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', slot BIGINT PATH '$[1]',
                   owner VARBINARY(510) PATH '$[2]', token BIGINT PATH '$[3]')) w
          LEFT JOIN rowlock_locks l ON l.name = UNHEX(w.name) AND l.slot = w.slot
               AND l.owner = UNHEX(w.owner) AND l.token = w.token
         WHERE FIND_IN_SET(w.n, v_mine) OR l.name IS NOT NULL;
    END IF;
    COMMIT;
END;
