-- Makes room for a grant beside the others of its name, under the name's token row: removes what
-- has expired and what this owner had, and says whether the rest lets another in. A row that
-- somebody is changing at this moment may yet be renewed, so it counts as one that does not.
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
