-- The tables of rowlock and the function that grants, version 1, for PostgreSQL 12 and later.
--
-- Run by `rowlock install` and rowlock_install(), or by a DBA:  psql -v ON_ERROR_STOP=1 -f schema.sql
-- Harmless when run again, and by many at once: the advisory lock lets one pass at a time, and every
-- statement does nothing where its work is done. What each column means is in docs/ARCHITECTURE.md.
-- Every word beginning with rowlock_ is a name of ours: the library writes its schema and prefix in
-- front of it; for a DBA, search_path decides.

/* rowlock:schema */
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT pg_advisory_xact_lock(7237970109966541166);

-- No index but the key: one on expires would cost every renewal its HOT update. Rows come and go all
-- the time, so dead ones are cleared early.
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 255),
    slot     integer NOT NULL,
    owner    text COLLATE "C" NOT NULL CHECK (octet_length(owner) BETWEEN 1 AND 255),
    token    bigint NOT NULL,
    attempt  bigint NOT NULL,
    acquired bigint NOT NULL,
    expires  bigint NOT NULL,
    ttl      bigint NOT NULL,
    lapsed   bigint NOT NULL DEFAULT 0,
    renewals bigint NOT NULL DEFAULT 0,
    host     text NOT NULL DEFAULT '',
    pid      bigint NOT NULL DEFAULT 0,
    program  text NOT NULL DEFAULT '',
    note     text NOT NULL DEFAULT '',
    PRIMARY KEY (name, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    text COLLATE "C" PRIMARY KEY,
    token   bigint NOT NULL,
    granted bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- Resources that have no column of their own for the newest token they have seen.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource text COLLATE "C" PRIMARY KEY CHECK (octet_length(resource) BETWEEN 1 AND 255),
    token    bigint NOT NULL,
    seen     bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS rowlock_meta (
    id          integer PRIMARY KEY CHECK (id = 1),
    version     integer NOT NULL,
    identity    text NOT NULL,
    token_floor bigint NOT NULL
);

-- Grants a lock that its caller, acquire.sql, has just seen free or expired, and returns the token; or
-- NULL if another transaction is changing it at this moment or got it first. Never waits for a lock:
-- whoever grants a name holds its token row, and a row held by another is passed over. A token row that
-- does not exist yet cannot be held, so for the first grant ever an advisory lock stands in for it; it
-- ends with the transaction. p_stands: an expired row, or one of our own owner, is there to be taken
-- over. Plain statements, each with a snapshot of its own, are cheaper here than one with three CTEs.
CREATE OR REPLACE FUNCTION rowlock_grant(
    p_name text, p_slot integer, p_owner text, p_attempt bigint, p_ttl bigint, p_host text,
    p_pid bigint, p_program text, p_note text, p_now bigint, p_stands boolean)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_token bigint;
BEGIN
    SELECT t.token + 1 INTO v_token FROM rowlock_tokens t
     WHERE t.name = p_name FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        IF EXISTS (SELECT FROM rowlock_tokens t WHERE t.name = p_name) OR
           NOT pg_try_advisory_xact_lock(hashtextextended('rowlock ' || p_name, 0)) THEN
            RETURN NULL;
        END IF;
        -- The floor is share-locked until we commit: rowlock_fold must not raise it in between.
        INSERT INTO rowlock_tokens (name, token, granted)
        SELECT p_name, m.token_floor, p_now FROM rowlock_meta m WHERE m.id = 1 FOR SHARE SKIP LOCKED
        ON CONFLICT (name) DO NOTHING;
        SELECT t.token + 1 INTO v_token FROM rowlock_tokens t
         WHERE t.name = p_name FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF p_stands THEN
        PERFORM FROM rowlock_locks l WHERE l.name = p_name AND l.slot = p_slot FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        UPDATE rowlock_locks l
           SET owner = p_owner, token = v_token, attempt = p_attempt, acquired = p_now,
               expires = p_now + p_ttl, ttl = p_ttl, lapsed = 0, renewals = 0, host = p_host,
               pid = p_pid, program = p_program, note = p_note
         WHERE l.name = p_name AND l.slot = p_slot AND (l.expires <= p_now OR l.owner = p_owner);
    ELSE
        INSERT INTO rowlock_locks (name, slot, owner, token, attempt, acquired, expires, ttl,
                                   host, pid, program, note)
        VALUES (p_name, p_slot, p_owner, v_token, p_attempt, p_now, p_now + p_ttl, p_ttl,
                p_host, p_pid, p_program, p_note)
        ON CONFLICT (name, slot) DO NOTHING;
    END IF;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE rowlock_tokens t SET token = v_token, granted = p_now WHERE t.name = p_name;
    RETURN v_token;
END $$;

INSERT INTO rowlock_meta (id, version, identity, token_floor)
VALUES (1, 1, md5(random()::text || clock_timestamp()::text || pg_backend_pid()::text), 0)
ON CONFLICT (id) DO NOTHING;
COMMIT;
