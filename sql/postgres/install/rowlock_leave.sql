-- Takes a ticket out of the line, and with it those that have expired. If it was the first, the
-- next one is rung for, unless p_quiet: an exclusive grant has nothing to leave to it.
CREATE OR REPLACE FUNCTION rowlock_leave(p_name text, p_attempt bigint, p_quiet boolean)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := {clock};
    v_ticket bigint;
    v_bell text;
BEGIN
    DELETE FROM rowlock_waiters w WHERE w.name = p_name AND w.attempt = p_attempt
    RETURNING w.ticket, w.bell INTO v_ticket, v_bell;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM rowlock_waiters w WHERE (w.name, w.ticket, w.attempt) IN (
        SELECT o.name, o.ticket, o.attempt FROM rowlock_waiters o
         WHERE o.name = p_name AND o.expires <= v_now FOR UPDATE SKIP LOCKED);
    IF v_bell <> '' THEN
        EXECUTE pg_catalog.format('UNLISTEN %I', v_bell);
    END IF;
    IF NOT p_quiet AND NOT EXISTS (
        SELECT FROM rowlock_waiters w
         WHERE w.name = p_name AND w.expires > v_now AND w.xmax = '0'::pg_catalog.xid
           AND (w.ticket, w.attempt) < (v_ticket, p_attempt)) THEN
        PERFORM rowlock_ring(p_name);
    END IF;
    RETURN true;
END $$;
