-- See listen.sql.
CREATE OR REPLACE FUNCTION rowlock_listen(p_wakeup text) RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF p_wakeup <> '' THEN
        EXECUTE pg_catalog.format('LISTEN %I', p_wakeup);
    END IF;
    RETURN p_wakeup;
END $$;
