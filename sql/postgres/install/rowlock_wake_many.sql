-- Wakes the first in the queue of each of these names. See rowlock_wake.sql.
CREATE OR REPLACE FUNCTION rowlock_wake_many(p_names text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_name text;
BEGIN
    FOR v_name IN SELECT DISTINCT w.name FROM rowlock_waiters w WHERE w.name = ANY (p_names) LOOP
        PERFORM rowlock_wake(v_name);
    END LOOP;
    RETURN true;
END $$;
