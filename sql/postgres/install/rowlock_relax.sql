-- A commit of this transaction need not wait for the disk.
--
-- Where commits wait for a standby, this one does too. It is a function, since a proxy that shares
-- sessions keeps one whose statement has set_config in its text.
CREATE OR REPLACE FUNCTION rowlock_relax() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT pg_catalog.current_setting('synchronous_standby_names') <> ''::text
           OR pg_catalog.set_config('synchronous_commit', 'off', true) = 'off'::text
$$;
