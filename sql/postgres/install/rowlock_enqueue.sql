-- Takes a ticket, or keeps the one that this attempt has: see enqueue.sql.
CREATE OR REPLACE FUNCTION rowlock_enqueue(
    p_name text, p_permits integer, p_owner text, p_attempt bigint, p_lease bigint, p_bell text,
    p_host text, p_pid bigint, p_program text, p_note text)
RETURNS TABLE (o_ticket bigint, o_ahead bigint, o_rung boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := {clock};
    v_ticket bigint;
    v_ahead bigint;
    v_bell text := '';
BEGIN
    -- Do not wait for the disk: a waiter whose ticket is lost in a crash takes a new one.
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
    SELECT w.ticket INTO v_ticket FROM rowlock_waiters w WHERE w.name = p_name
           AND w.attempt = p_attempt;
    SELECT pg_catalog.count(*) INTO v_ahead FROM rowlock_waiters w
     WHERE w.name = p_name AND w.expires > v_now
       AND (v_ticket IS NULL OR (w.ticket, w.attempt) < (v_ticket, p_attempt));
    -- Every notification wakes every session that listens to anything in this database, be it for
    -- nothing: those who will not be the first soon do not listen yet.
    IF v_ahead < 64 THEN
        v_bell := p_bell;
    END IF;
    UPDATE rowlock_waiters w SET expires = v_now + p_lease, bell = v_bell
     WHERE w.name = p_name AND w.ticket = v_ticket AND w.attempt = p_attempt;
    IF NOT FOUND THEN
        INSERT INTO rowlock_waiters (name, ticket, attempt, permits, owner, since, expires, bell,
                                     host, pid, program, note)
        SELECT p_name, greatest(v_now, coalesce(pg_catalog.max(w.ticket), 0) + 1), p_attempt,
               p_permits, p_owner, v_now, v_now + p_lease, v_bell, p_host, p_pid, p_program, p_note
          FROM rowlock_waiters w WHERE w.name = p_name
        RETURNING ticket INTO v_ticket;
    END IF;
    IF v_bell <> '' THEN
        EXECUTE pg_catalog.format('LISTEN %I', v_bell);
    END IF;
    RETURN QUERY SELECT v_ticket, v_ahead, v_bell <> '';
END $$;
