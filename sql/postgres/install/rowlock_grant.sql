-- Grants a lock that acquire.sql has just seen free or expired. Returns the token. Returns NULL if
-- another transaction got the lock first, or is changing it. Never waits for a lock: a grant of a
-- name locks its token row, and skips a row that another transaction has locked.
--
-- p_stands: the name has a lock row.
-- p_ticket: the waiter's ticket, which ends with the grant; 0: none.
--
-- These are plain statements, each with its own snapshot. One statement with three CTEs would cost
-- more.
CREATE OR REPLACE FUNCTION rowlock_grant(
    p_name text, p_permits integer, p_owner text, p_request bigint, p_ttl bigint, p_host text,
    p_pid bigint, p_program text, p_note text, p_ticket bigint, p_now bigint, p_stands boolean)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_token bigint;
    v_newest integer;
BEGIN
    SELECT t.token + 1, t.permits INTO v_token, v_newest FROM rowlock_tokens t
     WHERE t.name = p_name FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF NOT rowlock_new_counter(p_name, p_now) THEN
            RETURN NULL;
        END IF;
        SELECT t.token + 1, t.permits INTO v_token, v_newest FROM rowlock_tokens t
         WHERE t.name = p_name FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF p_permits = 0 AND v_newest = 0 AND p_stands THEN
        PERFORM FROM rowlock_locks l
          WHERE l.name = p_name AND l.slot = 0 AND (l.expires <= p_now OR l.owner = p_owner)
            FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        UPDATE rowlock_locks l
           SET owner = p_owner, token = v_token, request = p_request, acquired = p_now,
               expires = p_now + p_ttl, ttl = p_ttl, lapsed = 0, renewals = 0, host = p_host,
               pid = p_pid, program = p_program, note = p_note
         WHERE l.name = p_name AND l.slot = 0 AND (l.expires <= p_now OR l.owner = p_owner);
    ELSE
        IF (p_permits <> 0 OR v_newest <> 0) AND
           NOT rowlock_make_room(p_name, p_permits, p_owner, p_now) THEN
            RETURN NULL;
        END IF;
        INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires,
                                   ttl, host, pid, program, note)
        VALUES (p_name, CASE WHEN p_permits = 0 THEN 0 ELSE v_token END, p_permits, p_owner,
                v_token, p_request, p_now, p_now + p_ttl, p_ttl, p_host, p_pid, p_program, p_note)
        ON CONFLICT (name, slot) DO NOTHING;
    END IF;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE rowlock_tokens t SET token = v_token, granted = p_now, permits = p_permits
     WHERE t.name = p_name;
    IF p_ticket <> 0 THEN
        PERFORM rowlock_leave(p_name, p_request, p_permits = 0);
    END IF;
    RETURN v_token;
END $$;
