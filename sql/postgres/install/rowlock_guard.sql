-- See guard.sql. Two statements, so that the second sees the state after the first has its lock.
CREATE OR REPLACE FUNCTION rowlock_guard(p_name text, p_slot bigint, p_owner text, p_token bigint)
RETURNS TABLE (o_token bigint, o_stands boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_token bigint;
    v_fenced bigint;
BEGIN
    SELECT t.token, t.fenced INTO v_token, v_fenced FROM rowlock_tokens t WHERE t.name = p_name
     FOR SHARE;
    IF FOUND THEN
        RETURN QUERY
            SELECT v_token, v_token = p_token OR (p_slot <> 0 AND p_token > v_fenced AND EXISTS (
                SELECT FROM rowlock_locks l
                 WHERE l.name = p_name AND l.slot = p_slot AND l.owner = p_owner
                   AND l.token = p_token));
    END IF;
END $$;
