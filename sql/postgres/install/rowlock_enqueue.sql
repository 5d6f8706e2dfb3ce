-- See enqueue.sql. Takes a ticket, or extends the lease of the ticket that this request has.
CREATE OR REPLACE FUNCTION rowlock_enqueue(
    p_name text, p_permits integer, p_owner text, p_request bigint, p_lease bigint, p_ticket bigint,
    p_wakeup text, p_host text, p_pid bigint, p_program text, p_note text, p_listens boolean)
RETURNS TABLE (o_ticket bigint, o_ahead bigint, o_woken boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := {clock};
    v_ticket bigint;
    v_ahead bigint;
    v_wakeup text := '';
BEGIN
    -- Does not wait for the disk. A waiter whose ticket is lost in a crash takes a new one. Where
    -- commits wait for a standby, this one does too: the queue keeps its order in a failover.
    PERFORM rowlock_relax();
    -- Without p_ticket it looks through the queue: the answer to the first attempt may be lost.
    SELECT w.ticket INTO v_ticket FROM rowlock_waiters w
     WHERE w.name = p_name AND w.ticket >= p_ticket AND w.request = p_request
     ORDER BY w.ticket LIMIT 1;
    -- A count costs as many rows, and each waiter asks again and again.
    SELECT pg_catalog.count(*) INTO v_ahead FROM (
        SELECT FROM rowlock_waiters w
         WHERE w.name = p_name AND w.expires > v_now
           AND (v_ticket IS NULL OR (w.ticket, w.request) < (v_ticket, p_request))
         LIMIT 256) before;
    -- Each notification wakes all sessions that listen to anything in this database. So waiters far
    -- back in the queue do not listen yet. One session may listen for many (listen.sql).
    IF v_ahead < 64 OR NOT p_listens THEN
        v_wakeup := p_wakeup;
    END IF;
    UPDATE rowlock_waiters w SET expires = v_now + p_lease, wakeup = v_wakeup
     WHERE w.name = p_name AND w.ticket = v_ticket AND w.request = p_request;
    IF NOT FOUND THEN
        INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires, wakeup,
                                     host, pid, program, note)
        SELECT p_name, greatest(v_now, coalesce(pg_catalog.max(w.ticket), 0) + 1), p_request,
               p_permits, p_owner, v_now, v_now + p_lease, v_wakeup, p_host, p_pid, p_program,
               p_note
          FROM rowlock_waiters w WHERE w.name = p_name
        RETURNING ticket INTO v_ticket;
    END IF;
    IF v_wakeup <> '' AND p_listens THEN
        EXECUTE pg_catalog.format('LISTEN %I', v_wakeup);
    END IF;
    RETURN QUERY SELECT v_ticket, v_ahead, v_wakeup <> '';
END $$;
