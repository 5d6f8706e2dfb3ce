-- See fence.sql. A locking read sees the newest row at any isolation level.
CREATE PROCEDURE IF NOT EXISTS rowlock_fence(p_resource VARBINARY(255), p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    INSERT INTO rowlock_fences (resource, token, seen)
    VALUES (p_resource, p_token, {clock})
    ON DUPLICATE KEY UPDATE
        seen = IF(token <= p_token, {clock}, seen),
        token = GREATEST(token, p_token);
    SELECT token = p_token FROM rowlock_fences WHERE resource = p_resource FOR UPDATE;
END;
