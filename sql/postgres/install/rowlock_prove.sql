-- Proves with a commit that no standby of this server was promoted. Such a server cannot commit.
--
-- It is called where no row was found. A role that may not write the message has no proof.
CREATE OR REPLACE FUNCTION rowlock_prove() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF pg_catalog.pg_is_in_recovery() THEN
        RAISE EXCEPTION USING ERRCODE = 'read_only_sql_transaction',
            MESSAGE = 'the server is a standby, and may lack the grant';
    END IF;
    PERFORM pg_catalog.pg_logical_emit_message(true, 'rowlock'::text, ''::text);
    RETURN true;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN true;
END $$;
