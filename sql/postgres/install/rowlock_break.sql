-- See break.sql. The first statement locks the token row. The next one then sees the newest lock
-- row.
CREATE OR REPLACE FUNCTION rowlock_break(p_name text, p_token bigint)
RETURNS TABLE (o_name text, o_slot bigint, o_permits integer, o_owner text, o_token bigint,
               o_acquired bigint, o_expires bigint, o_ttl bigint, o_renewals bigint, o_host text,
                   o_pid bigint, o_program text,
               o_note text, o_now bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM rowlock_tokens t WHERE t.name = p_name FOR NO KEY UPDATE;
    RETURN QUERY
        DELETE FROM rowlock_locks l
         WHERE l.name = p_name AND l.slot IN (0, p_token) AND l.token = p_token
        RETURNING l.name, l.slot, l.permits, l.owner, l.token, l.acquired, l.expires, l.ttl,
            l.renewals, l.host,
                  l.pid, l.program, l.note,
                  {clock};
    IF FOUND THEN
        UPDATE rowlock_tokens t SET token = t.token + 1 WHERE t.name = p_name;
        PERFORM rowlock_wake(p_name);
    END IF;
END $$;
