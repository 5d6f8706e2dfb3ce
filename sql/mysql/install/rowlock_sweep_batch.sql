-- Removes one batch of rows whose leases have run out, as the library does by expired.sql and
-- sweep_keys.sql. p_after, p_slot: the batch begins behind them, and they become the last row that
-- was looked at. p_seen: how many rows were looked at.
CREATE PROCEDURE IF NOT EXISTS rowlock_sweep_batch(
    p_batch INT, INOUT p_after VARBINARY(255), INOUT p_slot BIGINT, OUT p_seen INT, OUT p_gone INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_done INT DEFAULT 0;
    DECLARE v_older, v_token BIGINT DEFAULT 0;
    DECLARE v_pack LONGTEXT CHARACTER SET ascii DEFAULT '';
    DECLARE page CURSOR FOR
        SELECT name, slot, token FROM rowlock_locks
         WHERE name >= p_after AND (name > p_after OR slot > p_slot) AND expires <= {clock}
         ORDER BY name, slot LIMIT p_batch;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;

    SET p_seen = 0, p_gone = 0;
    OPEN page;
    each_row: LOOP
        FETCH page INTO p_after, p_slot, v_token;
        IF v_done THEN
            LEAVE each_row;
        END IF;
        SET p_seen = p_seen + 1;
        SET v_pack = CONCAT(v_pack, ',[', p_slot, ',', v_token, ',"', HEX(p_after), '"]');
    END LOOP;
    CLOSE page;
    IF p_seen > 0 THEN
        SET v_pack = CONCAT('[', SUBSTRING(v_pack, 2), ']');
        {sweep_keys};
        SET p_gone = ROW_COUNT();
    END IF;
END;
