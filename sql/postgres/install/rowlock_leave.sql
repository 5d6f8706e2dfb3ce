-- Removes a ticket, and the expired tickets of the name. If it was the first, wakes the next
-- waiter. p_quiet: wakes no one, because an exclusive grant leaves the next waiter nothing to take.
CREATE OR REPLACE FUNCTION rowlock_leave(p_name text, p_request bigint, p_quiet boolean)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := {clock};
    v_ticket bigint;
    v_wakeup text;
BEGIN
    -- A request has two tickets if its second attempt did not see the first one in flight.
    WITH gone AS (DELETE FROM rowlock_waiters w WHERE w.name = p_name AND w.request = p_request
                  RETURNING w.ticket, w.wakeup)
    SELECT g.ticket, g.wakeup INTO v_ticket, v_wakeup FROM gone g ORDER BY g.ticket LIMIT 1;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM rowlock_waiters w WHERE (w.name, w.ticket, w.request) IN (
        SELECT o.name, o.ticket, o.request FROM rowlock_waiters o
         WHERE o.name = p_name AND o.expires <= v_now FOR UPDATE SKIP LOCKED);
    IF v_wakeup <> '' THEN
        EXECUTE pg_catalog.format('UNLISTEN %I', v_wakeup);
    END IF;
    IF NOT p_quiet AND NOT EXISTS (
        SELECT FROM rowlock_waiters w
         WHERE w.name = p_name AND w.expires > v_now AND w.xmax = '0'::pg_catalog.xid
           AND (w.ticket, w.request) < (v_ticket, p_request)) THEN
        PERFORM rowlock_wake(p_name);
    END IF;
    RETURN true;
END $$;
