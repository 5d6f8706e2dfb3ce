-- Makes the token row of a new name. False: the row is there and locked, or another transaction is
-- making it.
--
-- A row that is not there cannot be locked. So the first grant of a name takes an advisory lock
-- instead, which ends with the transaction. Its key is a digest that depends on rowlock_meta. Only
-- roles that may read that table know it. Others could take the lock, and keep the name busy.
CREATE OR REPLACE FUNCTION rowlock_new_counter(p_name text, p_now bigint)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_floor bigint;
    v_identity text;
BEGIN
    SELECT m.token_floor, m.identity INTO v_floor, v_identity FROM rowlock_meta m WHERE m.id = 1;
    IF EXISTS (SELECT FROM rowlock_tokens t WHERE t.name = p_name) OR
       NOT pg_catalog.pg_try_advisory_xact_lock(
           ('x' || pg_catalog.substr(pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
               v_identity || v_floor::text || ' rowlock_tokens ' || p_name, 'UTF8')),
           'hex'), 1, 16))::bit(64)::bigint) THEN
        RETURN false;
    END IF;
    -- The floor is share-locked until the commit, so fold cannot raise it in between. Changes of
    -- floor or identity lock the row FOR UPDATE. The note of a sweep (swept.sql) does not, and KEY
    -- SHARE does not block it. WHERE checks that floor and identity are those of the digest. So all
    -- sessions that get here have the same key for the name.
    INSERT INTO rowlock_tokens (name, token, granted)
    SELECT p_name, v_floor, p_now FROM rowlock_meta m
     WHERE m.id = 1 AND m.token_floor = v_floor AND m.identity = v_identity
       FOR KEY SHARE SKIP LOCKED
    ON CONFLICT (name) DO NOTHING;
    RETURN true;
END $$;
