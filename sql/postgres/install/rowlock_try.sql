-- See acquire.sql: the same for one of many requests.
CREATE OR REPLACE FUNCTION rowlock_try(
    p_name text, p_permits integer, p_owner text, p_request bigint, p_ttl bigint, p_host text,
    p_pid bigint, p_program text, p_note text, p_ticket bigint, p_unfair boolean)
RETURNS TABLE (
    o_token bigint, o_ours boolean, o_settling boolean, o_behind boolean, o_now bigint,
    o_name text, o_slot bigint, o_permits integer, o_owner text, o_granted bigint,
    o_acquired bigint, o_expires bigint, o_ttl bigint, o_renewals bigint, o_host text,
    o_pid bigint, o_program text, o_note text)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := {clock};
    v_stands boolean;
BEGIN
    v_stands := EXISTS (SELECT FROM rowlock_locks l WHERE l.name = p_name);
    IF v_stands OR EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = p_name) THEN
        RETURN QUERY
            SELECT NULL::bigint, f.o_ours, coalesce(f.o_changing, f.o_first_leaves),
                   f.o_first_leaves IS NOT NULL, v_now, f.o_name, f.o_slot, f.o_permits,
                   f.o_owner, f.o_token, f.o_acquired, f.o_expires, f.o_ttl, f.o_renewals,
                   f.o_host, f.o_pid, f.o_program, f.o_note
              FROM rowlock_look(p_name, p_permits, p_owner, p_request, p_ticket, p_unfair,
                                v_now) f
             WHERE f.o_name IS NOT NULL OR f.o_first_leaves IS NOT NULL;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    o_token := rowlock_grant(p_name, p_permits, p_owner, p_request, p_ttl, p_host, p_pid,
                             p_program, p_note, p_ticket, v_now, v_stands);
    o_behind := false;
    o_now := v_now;
    RETURN NEXT;
END $$;
