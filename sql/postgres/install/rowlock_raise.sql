-- See raise.sql. The floor is locked first. That waits for grants that are making a counter, and
-- keeps new ones out. The next statements see what they have committed.
CREATE OR REPLACE FUNCTION rowlock_raise(p_by bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_floor bigint;
BEGIN
    IF pg_catalog.current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'tokens can only be raised at READ COMMITTED: a snapshot hides new names'
              USING ERRCODE = '0A000';
    END IF;
    SELECT m.token_floor INTO v_floor FROM rowlock_meta m WHERE m.id = 1 FOR UPDATE;
    PERFORM FROM rowlock_tokens t ORDER BY t.name FOR NO KEY UPDATE;
    v_floor := greatest(v_floor, (SELECT pg_catalog.max(t.token) FROM rowlock_tokens t)) + p_by;
    UPDATE rowlock_tokens t SET token = v_floor, fenced = v_floor;
    UPDATE rowlock_meta m SET token_floor = v_floor WHERE m.id = 1;
    RETURN v_floor;
END $$;
