-- Releases all locks of a batch, if no row is locked and none is lost. p_gone: how many. 0: none,
-- and nothing was answered. For MariaDB: see rowlock_grant_at_once.
CREATE PROCEDURE IF NOT EXISTS rowlock_release_at_once(
    p_grants LONGTEXT CHARACTER SET ascii, p_count INT, OUT p_gone INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    SET p_gone = 0;
    /*M! BEGIN
        DECLARE EXIT HANDLER FOR 1205 BEGIN ROLLBACK; SET p_gone = 0; END;
        DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        START TRANSACTION;
        SET STATEMENT innodb_lock_wait_timeout = 0 FOR
        DELETE l
          FROM JSON_TABLE(p_grants, '$[*]' COLUMNS (
                   name VARBINARY(510) PATH '$[0]', slot BIGINT PATH '$[1]',
                   owner VARBINARY(510) PATH '$[2]', token BIGINT PATH '$[3]')) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
             ON l.name = UNHEX(w.name) AND l.slot = w.slot AND l.owner = UNHEX(w.owner)
                AND l.token = w.token;
        SET p_gone = ROW_COUNT();
        IF p_gone = p_count THEN
            SELECT j.n, 1 FROM JSON_TABLE(p_grants, '$[*]' COLUMNS (n FOR ORDINALITY)) j;
            COMMIT;
        ELSE
            ROLLBACK;
            SET p_gone = 0;
        END IF;
    END; */
END;
