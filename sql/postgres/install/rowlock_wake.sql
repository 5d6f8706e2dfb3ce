-- Wakes for the first in line, after something has changed that it waits for. A statement of its
-- own in a VOLATILE function, so that it sees every ticket that was there when the change was made:
-- one that came later looks for itself, and finds the change in progress or done (acquire.sql,
-- settling). One who is changing its ticket at this moment may be leaving, and would not wake for
-- us: then the next is woken for too. A ticket is deleted before the line is looked at, so of two
-- who leave at once one sees the other.
CREATE OR REPLACE FUNCTION rowlock_wake(p_name text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint;
    v_ticket bigint := 0;
    v_request bigint := 0;
    v_changing boolean;
    v_wakeup text;
BEGIN
    -- Usually nobody waits: this costs a third of what is below.
    IF NOT EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = p_name) THEN
        RETURN true;
    END IF;
    v_now := {clock};
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
            PERFORM pg_catalog.pg_notify(v_wakeup, '');
        END IF;
        IF NOT v_changing THEN
            RETURN true;
        END IF;
    END LOOP;
END $$;
