-- Makes room for a grant beside the others of its name, under a lock of the token row. Removes
-- expired rows and rows of this owner, and returns whether the other rows let one more grant in. A
-- row that another transaction is changing may be renewed, so it keeps the grant out.
CREATE OR REPLACE FUNCTION rowlock_make_room(p_name text, p_permits integer, p_owner text,
                                             p_now bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_locked bigint;
    v_over bigint;
    v_others bigint;
    v_against bigint;
BEGIN
    PERFORM FROM rowlock_locks l
      WHERE l.name = p_name AND (l.expires <= p_now OR l.owner = p_owner) FOR UPDATE SKIP LOCKED;
    GET DIAGNOSTICS v_locked = ROW_COUNT;
    SELECT pg_catalog.count(*) FILTER (WHERE l.expires <= p_now OR l.owner = p_owner),
           pg_catalog.count(*) FILTER (WHERE l.expires > p_now AND l.owner <> p_owner),
           pg_catalog.count(*) FILTER (WHERE l.expires > p_now AND l.owner <> p_owner
                              AND (p_permits = 0 OR l.slot = 0 OR l.permits <> p_permits))
      INTO v_over, v_others, v_against
      FROM rowlock_locks l WHERE l.name = p_name;
    IF v_over <> v_locked OR v_against > 0 OR (p_permits > 0 AND v_others >= p_permits) THEN
        RETURN false;
    END IF;
    DELETE FROM rowlock_locks l WHERE l.name = p_name AND (l.expires <= p_now OR l.owner = p_owner);
    RETURN true;
END $$;
