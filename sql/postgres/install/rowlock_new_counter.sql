-- Makes the token row of a name that has none. False: it has one, which is locked, or another
-- transaction is about to make it. A token row that does
-- not exist yet cannot be locked, so for the first grant ever an advisory lock stands in for it; it
-- ends with the transaction. Its key is a digest of what only those know who may read rowlock_meta:
-- others could take it, and keep the name busy.
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
    -- The floor is share-locked until we commit: fold must not raise it in between. What changes
    -- floor or identity locks the row FOR UPDATE. A sweep's note (swept.sql) does not, and KEY
    -- SHARE goes with that. The row is still as the key was made of it, so that all who come this
    -- far have the same key for the name.
    INSERT INTO rowlock_tokens (name, token, granted)
    SELECT p_name, v_floor, p_now FROM rowlock_meta m
     WHERE m.id = 1 AND m.token_floor = v_floor AND m.identity = v_identity
       FOR KEY SHARE SKIP LOCKED
    ON CONFLICT (name) DO NOTHING;
    RETURN true;
END $$;
