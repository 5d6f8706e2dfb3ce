-- Wakes the first in the queue, after a change that it waits for.
--
-- It is a statement of its own in a VOLATILE function. So it sees every ticket that was there when
-- the change was made. A later waiter looks for itself, and finds the change in progress or done
-- (acquire.sql, settling). A waiter that is changing its ticket may be leaving, and would wake no
-- one for us. So the next one is woken too. A ticket is deleted before the queue is read. So if two
-- leave at once, one of them sees the other.
CREATE OR REPLACE FUNCTION rowlock_wake(p_name text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint;
    v_ticket bigint;
    v_request bigint;
    v_changing boolean;
    v_wakeup text;
BEGIN
    -- Most queues are empty, and this costs a third of the rest.
    IF NOT EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = p_name) THEN
        RETURN true;
    END IF;
    v_now := {clock};
    v_ticket := 0;
    v_request := 0;
    LOOP
        SELECT w.ticket, w.request, w.xmax <> '0'::pg_catalog.xid, w.wakeup
          INTO v_ticket, v_request, v_changing, v_wakeup FROM rowlock_waiters w
         WHERE w.name = p_name AND w.expires > v_now
           AND (w.ticket, w.request) > (v_ticket, v_request)
         ORDER BY w.ticket, w.request LIMIT 1;
        IF NOT FOUND THEN
            RETURN true;
        END IF;
        IF v_wakeup <> '' THEN
            PERFORM pg_catalog.pg_notify(v_wakeup, v_request::text);
        END IF;
        IF NOT v_changing THEN
            RETURN true;
        END IF;
    END LOOP;
END $$;
