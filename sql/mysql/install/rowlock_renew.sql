-- See renew.sql. UPDATE returns no row here, so the row is read back. If it was not
-- renewed (interrupted.sql), its lease is an older one.
CREATE PROCEDURE IF NOT EXISTS rowlock_renew(
    p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), p_token BIGINT, p_ttl BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_done INT;
    UPDATE rowlock_locks
       SET lapsed = GREATEST(0, {clock} - expires),
           expires = {clock} + IF(p_ttl > 0, p_ttl, ttl),
           ttl = IF(p_ttl > 0, p_ttl, ttl), renewals = renewals + 1
     WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token;
    SET v_done = ROW_COUNT();
    SELECT expires, lapsed, expires - ttl FROM rowlock_locks
     WHERE v_done AND name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token;
END;
