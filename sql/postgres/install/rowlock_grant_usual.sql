-- Makes the usual grant: exclusive, of a lock that was granted exclusively before and has no holder
-- and no waiters. Returns the token. Returns 0 if the case is another one, or if it lost a race.
-- rowlock_grant decides then. NOT EXISTS comes before the token row is locked, so a request behind
-- waiters writes nothing.
CREATE OR REPLACE FUNCTION rowlock_grant_usual(
    p_name text, p_owner text, p_request bigint, p_ttl bigint, p_host text, p_pid bigint,
        p_program text,
    p_note text, p_now bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_token bigint;
BEGIN
    SELECT t.token + 1 INTO v_token FROM rowlock_tokens t
     WHERE t.name = p_name AND t.permits = 0
       AND NOT EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = p_name)
       FOR NO KEY UPDATE OF t SKIP LOCKED;
    IF FOUND THEN
        INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires,
                                   ttl, host, pid, program, note)
        VALUES (p_name, 0, 0, p_owner, v_token, p_request, p_now, p_now + p_ttl, p_ttl, p_host,
                p_pid, p_program, p_note)
        ON CONFLICT (name, slot) DO NOTHING;
        IF FOUND THEN
            UPDATE rowlock_tokens t SET token = v_token, granted = p_now WHERE t.name = p_name;
            RETURN v_token;
        END IF;
    END IF;
    RETURN 0;
END $$;
