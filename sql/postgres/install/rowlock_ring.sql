-- Rings for the first in line, after something has changed that it waits for. A statement of its
-- own in a VOLATILE function, so that it sees every ticket that was there when the change was made:
-- one that came later looks for itself, and finds the change in progress or done (acquire.sql,
-- settling). One who is changing its ticket at this moment may be leaving, and would not ring for
-- us: then the next is rung for too. A ticket is deleted before the line is looked at, so of two
-- who leave at once one sees the other.
CREATE OR REPLACE FUNCTION rowlock_ring(p_name text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint;
    v_ticket bigint := 0;
    v_attempt bigint := 0;
    v_changing boolean;
    v_bell text;
BEGIN
    -- Usually nobody waits: this costs a third of what is below.
    IF NOT EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = p_name) THEN
        RETURN true;
    END IF;
    v_now := {clock};
    LOOP
        SELECT w.ticket, w.attempt, w.xmax <> '0'::pg_catalog.xid, w.bell
          INTO v_ticket, v_attempt, v_changing, v_bell FROM rowlock_waiters w
         WHERE w.name = p_name AND w.expires > v_now
           AND (w.ticket, w.attempt) > (v_ticket, v_attempt)
         ORDER BY w.ticket, w.attempt LIMIT 1;
        IF NOT FOUND THEN
            RETURN true;
        END IF;
        IF v_bell <> '' THEN
            PERFORM pg_catalog.pg_notify(v_bell, '');
        END IF;
        IF NOT v_changing THEN
            RETURN true;
        END IF;
    END LOOP;
END $$;
