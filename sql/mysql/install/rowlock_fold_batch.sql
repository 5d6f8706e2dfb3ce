-- See fold.sql. It reads the candidates without locks. Then it locks each one by its key, and looks
-- at it again. A grant since then has changed the token. A grant in flight has locked the row.
CREATE PROCEDURE IF NOT EXISTS rowlock_fold_batch(
    p_idle BIGINT, p_batch INT, p_dry INT, OUT p_count INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_name VARBINARY(255);
    DECLARE v_done INT DEFAULT 0;
    DECLARE v_cut, v_token, v_floor BIGINT;
    DECLARE idle CURSOR FOR
        SELECT t.name, t.token FROM rowlock_tokens t LEFT JOIN rowlock_locks l ON l.name = t.name
         WHERE t.granted <= v_cut AND l.name IS NULL ORDER BY t.name LIMIT p_batch;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    SET p_count = 0;
    SET v_cut = {clock} - p_idle;
    START TRANSACTION;
    SELECT token_floor INTO v_floor FROM rowlock_meta WHERE id = 1 FOR UPDATE;
    OPEN idle;
    each_name: LOOP
        SET v_done = 0;
        FETCH idle INTO v_name, v_token;
        IF v_done THEN
            LEAVE each_name;
        END IF;
        SELECT token INTO v_token FROM rowlock_tokens
         WHERE name = v_name AND token = v_token FOR UPDATE SKIP LOCKED;
        IF NOT v_done THEN
            SET p_count = p_count + 1;
            IF NOT p_dry THEN
                SET v_floor = GREATEST(v_floor, v_token);
                DELETE FROM rowlock_tokens WHERE name = v_name;
            END IF;
        END IF;
    END LOOP;
    CLOSE idle;
    UPDATE rowlock_meta SET token_floor = v_floor WHERE id = 1;
    IF (SELECT token_floor FROM rowlock_meta WHERE id = 1) < v_floor THEN {interrupted}; END IF;
    COMMIT;
END;
