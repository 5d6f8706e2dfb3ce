-- The tables of rowlock and the function that grants, version 1, for PostgreSQL 12 and later.
--
-- Run by `rowlock install` and rowlock_install(), or by a DBA:  psql -v ON_ERROR_STOP=1 -f schema.sql
-- Harmless when run again, and by many at once: rowlock_meta is locked, so that one passes at a time, and
-- every statement does nothing where its work is done. Of two that create it at the same moment one is told
-- that it is there; run again. What each column means is in docs/ARCHITECTURE.md.
-- Every word beginning with rowlock_ is a name of ours: the library writes its schema and prefix in
-- front of it; for a DBA, search_path decides.
--
-- Whoever may create in a schema of search_path may put operators and functions there. So functions are named
-- with pg_catalog, and operators have operands of exactly the types that pg_catalog has them for: those are
-- found first. It has no float8 * integer, no oid = regclass, no integer || text: give each operand its type.

/* rowlock:schema */
BEGIN;
SET LOCAL client_min_messages = warning;
CREATE TABLE IF NOT EXISTS rowlock_meta (
    id          integer PRIMARY KEY CHECK (id = 1),
    version     integer NOT NULL,
    identity    text NOT NULL,
    token_floor bigint NOT NULL
);
LOCK TABLE rowlock_meta IN SHARE ROW EXCLUSIVE MODE;

-- No index but the key: one on expires would cost every renewal its HOT update. Rows come and go all
-- the time, so dead ones are cleared early. permits: 0 exclusive, -1 shared, above 0 one of so many.
-- slot: 0 for the exclusive grant, of which there is one; the grant's token for the others.
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 255),
    slot     bigint NOT NULL,
    permits  integer NOT NULL,
    owner    text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(owner) BETWEEN 1 AND 255),
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

-- permits: of the newest grant. While it is 0 no row of the name but that of slot 0 can be there.
-- fenced: grants with this token or a lower one guard nothing any more (raise.sql).
CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    text COLLATE "C" PRIMARY KEY,
    token   bigint NOT NULL,
    granted bigint NOT NULL,
    permits integer NOT NULL DEFAULT 0,
    fenced  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- Those who wait, in the order of their tickets, each under a lease of its own. bell: the channel that
-- the waiter listens to; '' for none. Nothing here decides who may hold a lock, only who is first.
CREATE TABLE IF NOT EXISTS rowlock_waiters (
    name    text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 255),
    ticket  bigint NOT NULL,
    attempt bigint NOT NULL,
    permits integer NOT NULL,
    owner   text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(owner) BETWEEN 1 AND 255),
    since   bigint NOT NULL,
    expires bigint NOT NULL,
    bell    text NOT NULL DEFAULT '',
    host    text NOT NULL DEFAULT '',
    pid     bigint NOT NULL DEFAULT 0,
    program text NOT NULL DEFAULT '',
    note    text NOT NULL DEFAULT '',
    PRIMARY KEY (name, ticket, attempt)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- Resources that have no column of their own for the newest token they have seen.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource text COLLATE "C" PRIMARY KEY CHECK (pg_catalog.octet_length(resource) BETWEEN 1 AND 255),
    token    bigint NOT NULL,
    seen     bigint NOT NULL
) WITH (fillfactor = 50);

-- Keys that were claimed, and what came of them. token: of
-- the claimer's lock, 0: none. changed: when that was, by which they are swept.
CREATE TABLE IF NOT EXISTS rowlock_once (
    name        text COLLATE "C" PRIMARY KEY CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 255),
    fingerprint text COLLATE "C" NOT NULL,
    attempt     bigint NOT NULL,
    token       bigint NOT NULL,
    expires     bigint NOT NULL,
    done        boolean NOT NULL,
    result      bytea,
    changed     bigint NOT NULL
);

-- Walks under way. position: the table, and the last key walked by; pending: keys of rows to be written once more.
CREATE TABLE IF NOT EXISTS rowlock_walks (
    name      text COLLATE "C" PRIMARY KEY CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 255),
    step      bigint NOT NULL,
    position  text NOT NULL,
    pending   text NOT NULL,
    walked    bigint NOT NULL,
    written   bigint NOT NULL,
    untouched bigint NOT NULL,
    conflicts bigint NOT NULL,
    failed    bigint NOT NULL,
    changed   bigint NOT NULL
) WITH (fillfactor = 50);

-- Rings for the first in line, after something has changed that it waits for. A statement of its own in
-- a VOLATILE function, so that it sees every ticket that was there when the change was made: one that
-- came later looks for itself, and finds the change in progress or done (acquire.sql, settling). One who
-- is changing its ticket at this moment may be leaving, and would not ring for us: then the next is rung
-- for too. A ticket is deleted before the line is looked at, so of two who leave at once one sees the other.
CREATE OR REPLACE FUNCTION rowlock_ring(p_name text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint;
    v_ticket bigint := 0;
    v_attempt bigint := 0;
    v_changing boolean;
    v_bell text;
BEGIN
    -- Usually nobody waits: this costs a third of what is below.
    IF NOT EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = p_name) THEN
        RETURN true;
    END IF;
    v_now := (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint;
    LOOP
        SELECT w.ticket, w.attempt, w.xmax <> '0'::pg_catalog.xid, w.bell
          INTO v_ticket, v_attempt, v_changing, v_bell FROM rowlock_waiters w
         WHERE w.name = p_name AND w.expires > v_now AND (w.ticket, w.attempt) > (v_ticket, v_attempt)
         ORDER BY w.ticket, w.attempt LIMIT 1;
        IF NOT FOUND THEN
            RETURN true;
        END IF;
        IF v_bell <> '' THEN
            PERFORM pg_catalog.pg_notify(v_bell, '');
        END IF;
        IF NOT v_changing THEN
            RETURN true;
        END IF;
    END LOOP;
END $$;

-- Takes a ticket out of the line, and with it those that have expired. If it was the first, the next one is
-- rung for, unless p_quiet: an exclusive grant has nothing to leave to it.
CREATE OR REPLACE FUNCTION rowlock_leave(p_name text, p_attempt bigint, p_quiet boolean)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint;
    v_ticket bigint;
    v_bell text;
BEGIN
    DELETE FROM rowlock_waiters w WHERE w.name = p_name AND w.attempt = p_attempt
    RETURNING w.ticket, w.bell INTO v_ticket, v_bell;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM rowlock_waiters w WHERE (w.name, w.ticket, w.attempt) IN (
        SELECT o.name, o.ticket, o.attempt FROM rowlock_waiters o
         WHERE o.name = p_name AND o.expires <= v_now FOR UPDATE SKIP LOCKED);
    IF v_bell <> '' THEN
        EXECUTE pg_catalog.format('UNLISTEN %I', v_bell);
    END IF;
    IF NOT p_quiet AND NOT EXISTS (
        SELECT FROM rowlock_waiters w
         WHERE w.name = p_name AND w.expires > v_now AND w.xmax = '0'::pg_catalog.xid
           AND (w.ticket, w.attempt) < (v_ticket, p_attempt)) THEN
        PERFORM rowlock_ring(p_name);
    END IF;
    RETURN true;
END $$;

-- Takes a ticket, or keeps the one that this attempt has: see enqueue.sql.
CREATE OR REPLACE FUNCTION rowlock_enqueue(
    p_name text, p_permits integer, p_owner text, p_attempt bigint, p_lease bigint, p_bell text,
    p_host text, p_pid bigint, p_program text, p_note text)
RETURNS TABLE (o_ticket bigint, o_ahead bigint, o_rung boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint;
    v_ticket bigint;
    v_ahead bigint;
    v_bell text := '';
BEGIN
    -- Do not wait for the disk: a waiter whose ticket is lost in a crash takes a new one.
    PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
    SELECT w.ticket INTO v_ticket FROM rowlock_waiters w WHERE w.name = p_name AND w.attempt = p_attempt;
    SELECT pg_catalog.count(*) INTO v_ahead FROM rowlock_waiters w
     WHERE w.name = p_name AND w.expires > v_now
       AND (v_ticket IS NULL OR (w.ticket, w.attempt) < (v_ticket, p_attempt));
    -- Every notification wakes every session that listens to anything in this database, be it for nothing:
    -- those who will not be the first soon do not listen yet.
    IF v_ahead < 64 THEN
        v_bell := p_bell;
    END IF;
    UPDATE rowlock_waiters w SET expires = v_now + p_lease, bell = v_bell
     WHERE w.name = p_name AND w.ticket = v_ticket AND w.attempt = p_attempt;
    IF NOT FOUND THEN
        INSERT INTO rowlock_waiters (name, ticket, attempt, permits, owner, since, expires, bell,
                                     host, pid, program, note)
        SELECT p_name, greatest(v_now, coalesce(pg_catalog.max(w.ticket), 0) + 1), p_attempt, p_permits, p_owner,
               v_now, v_now + p_lease, v_bell, p_host, p_pid, p_program, p_note
          FROM rowlock_waiters w WHERE w.name = p_name
        RETURNING ticket INTO v_ticket;
    END IF;
    IF v_bell <> '' THEN
        EXECUTE pg_catalog.format('LISTEN %I', v_bell);
    END IF;
    RETURN QUERY SELECT v_ticket, v_ahead, v_bell <> '';
END $$;

-- See guard.sql. Two statements: the second sees what stands when the first has its lock.
CREATE OR REPLACE FUNCTION rowlock_guard(p_name text, p_slot bigint, p_owner text, p_token bigint)
RETURNS TABLE (o_token bigint, o_stands boolean) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_token bigint;
    v_fenced bigint;
BEGIN
    SELECT t.token, t.fenced INTO v_token, v_fenced FROM rowlock_tokens t WHERE t.name = p_name FOR SHARE;
    IF FOUND THEN
        RETURN QUERY SELECT v_token, v_token = p_token OR (p_slot <> 0 AND p_token > v_fenced AND EXISTS (
            SELECT FROM rowlock_locks l
             WHERE l.name = p_name AND l.slot = p_slot AND l.owner = p_owner AND l.token = p_token));
    END IF;
END $$;

-- Makes room for a grant beside the others of its name, under the name's token row: removes what has
-- expired and what this owner had, and says whether the rest lets another in. A row that somebody is
-- changing at this moment may yet be renewed, so it counts as one that does not.
CREATE OR REPLACE FUNCTION rowlock_make_room(p_name text, p_permits integer, p_owner text, p_now bigint)
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

-- What keeps a claim out: a row, and the first of those before it in the line; a column that is NULL: none.
-- An owner that comes back for its own need not stand in line. See acquire.sql; a function, because a
-- statement costs what is prepared in it, used or not.
--
-- A row whose xmax is set may be gone in a moment, by a release that did not see our ticket, and so may the
-- first ticket. Whoever is kept out by a row and a ticket that nobody is changing has been seen by all who
-- will change them; of counted grants so many must be of that kind as there are permits.
CREATE OR REPLACE FUNCTION rowlock_look(
    p_name text, p_permits integer, p_owner text, p_attempt bigint, p_ticket bigint, p_unfair boolean,
    p_now bigint)
RETURNS TABLE (
    o_ours boolean, o_changing boolean, o_first_leaves boolean, o_name text, o_slot bigint, o_permits integer,
    o_owner text, o_token bigint, o_acquired bigint, o_expires bigint, o_ttl bigint, o_renewals bigint,
    o_host text, o_pid bigint, o_program text, o_note text)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
        SELECT l.attempt = p_attempt AND l.owner = p_owner, l.changing,
               (SELECT w.xmax <> '0'::pg_catalog.xid FROM rowlock_waiters w
                 WHERE NOT p_unfair AND w.name = p_name AND w.expires > p_now
                   AND (p_ticket = 0 OR (w.ticket, w.attempt) < (p_ticket, p_attempt))
                   AND NOT EXISTS (SELECT FROM rowlock_locks m
                                    WHERE m.name = p_name AND m.owner = p_owner AND m.expires > p_now)
                 ORDER BY w.ticket, w.attempt LIMIT 1),
               l.name, l.slot, l.permits, l.owner, l.token, l.acquired, l.expires, l.ttl, l.renewals, l.host,
               l.pid, l.program, l.note
          FROM (SELECT) c
          LEFT JOIN (
               SELECT h.*, h.xmax <> '0'::pg_catalog.xid
                      OR (p_permits > 0 AND h.permits = p_permits AND
                          (SELECT pg_catalog.count(*) FROM rowlock_locks o WHERE o.name = p_name AND o.xmax = '0'::pg_catalog.xid
                              AND o.expires > p_now AND o.owner <> p_owner) < p_permits) AS changing
                 FROM rowlock_locks h
                WHERE h.name = p_name AND h.expires > p_now
                  AND (h.owner <> p_owner OR h.attempt = p_attempt)
                  AND (p_permits = 0 OR h.slot = 0 OR h.permits <> p_permits OR h.attempt = p_attempt
                       OR (p_permits > 0 AND
                           (SELECT pg_catalog.count(*) FROM rowlock_locks o WHERE o.name = p_name
                               AND o.expires > p_now AND o.owner <> p_owner) >= p_permits))
                ORDER BY h.attempt = p_attempt DESC, h.xmax <> '0'::pg_catalog.xid, h.slot LIMIT 1) l ON true;
END $$;

-- Grants a lock that its caller, acquire.sql, has just seen free or expired, and returns the token; or
-- NULL if another transaction is changing it at this moment or got it first. Never waits for a lock:
-- whoever grants a name holds its token row, and a row held by another is passed over. A token row that
-- does not exist yet cannot be held, so for the first grant ever an advisory lock stands in for it; it
-- ends with the transaction. Its key is a digest of what only those know who may read rowlock_meta: others could
-- take it, and keep the name busy. p_stands: a row of the name is there. p_ticket: of the waiter that this is,
-- which leaves the line with its grant; 0 if it never stood in it. Plain statements, each with a snapshot
-- of its own, are cheaper here than one with three CTEs.
CREATE OR REPLACE FUNCTION rowlock_grant(
    p_name text, p_permits integer, p_owner text, p_attempt bigint, p_ttl bigint, p_host text,
    p_pid bigint, p_program text, p_note text, p_ticket bigint, p_now bigint, p_stands boolean)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_token bigint;
    v_newest integer;
    v_floor bigint;
    v_identity text;
BEGIN
    SELECT t.token + 1, t.permits INTO v_token, v_newest FROM rowlock_tokens t
     WHERE t.name = p_name FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        SELECT m.token_floor, m.identity INTO v_floor, v_identity FROM rowlock_meta m WHERE m.id = 1;
        IF EXISTS (SELECT FROM rowlock_tokens t WHERE t.name = p_name) OR
           NOT pg_catalog.pg_try_advisory_xact_lock(('x' || pg_catalog.substr(pg_catalog.encode(pg_catalog.sha256(
               pg_catalog.convert_to(v_identity || v_floor::text || ' rowlock_tokens ' || p_name, 'UTF8')),
               'hex'), 1, 16))::bit(64)::bigint) THEN
            RETURN NULL;
        END IF;
        -- The floor is share-locked until we commit: rowlock_fold must not raise it in between. The row is still
        -- as the key was made of it, so that all who come this far have the same key for the name.
        INSERT INTO rowlock_tokens (name, token, granted)
        SELECT p_name, v_floor, p_now FROM rowlock_meta m
         WHERE m.id = 1 AND m.token_floor = v_floor AND m.identity = v_identity FOR SHARE SKIP LOCKED
        ON CONFLICT (name) DO NOTHING;
        SELECT t.token + 1, t.permits INTO v_token, v_newest FROM rowlock_tokens t
         WHERE t.name = p_name FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    IF p_permits = 0 AND v_newest = 0 AND p_stands THEN
        PERFORM FROM rowlock_locks l
          WHERE l.name = p_name AND l.slot = 0 AND (l.expires <= p_now OR l.owner = p_owner)
            FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        UPDATE rowlock_locks l
           SET owner = p_owner, token = v_token, attempt = p_attempt, acquired = p_now,
               expires = p_now + p_ttl, ttl = p_ttl, lapsed = 0, renewals = 0, host = p_host,
               pid = p_pid, program = p_program, note = p_note
         WHERE l.name = p_name AND l.slot = 0 AND (l.expires <= p_now OR l.owner = p_owner);
    ELSE
        IF (p_permits <> 0 OR v_newest <> 0) AND
           NOT rowlock_make_room(p_name, p_permits, p_owner, p_now) THEN
            RETURN NULL;
        END IF;
        INSERT INTO rowlock_locks (name, slot, permits, owner, token, attempt, acquired, expires, ttl,
                                   host, pid, program, note)
        VALUES (p_name, CASE WHEN p_permits = 0 THEN 0 ELSE v_token END, p_permits, p_owner, v_token,
                p_attempt, p_now, p_now + p_ttl, p_ttl, p_host, p_pid, p_program, p_note)
        ON CONFLICT (name, slot) DO NOTHING;
    END IF;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE rowlock_tokens t SET token = v_token, granted = p_now, permits = p_permits
     WHERE t.name = p_name;
    IF p_ticket <> 0 THEN
        PERFORM rowlock_leave(p_name, p_attempt, p_permits = 0);
    END IF;
    RETURN v_token;
END $$;

-- The usual grant: exclusive, of a lock that has been granted exclusively before, that nobody holds and nobody waits
-- for. Returns the token, or 0: it is not the usual case, or a race was lost, and rowlock_grant decides. NOT EXISTS
-- is asked before the token row is locked, so a claim that is behind others writes nothing.
CREATE OR REPLACE FUNCTION rowlock_grant_usual(
    p_name text, p_owner text, p_attempt bigint, p_ttl bigint, p_host text, p_pid bigint, p_program text,
    p_note text, p_now bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_token bigint;
BEGIN
    SELECT t.token + 1 INTO v_token FROM rowlock_tokens t
     WHERE t.name = p_name AND t.permits = 0
       AND NOT EXISTS (SELECT FROM rowlock_waiters w WHERE w.name = p_name)
       FOR NO KEY UPDATE OF t SKIP LOCKED;
    IF FOUND THEN
        INSERT INTO rowlock_locks (name, slot, permits, owner, token, attempt, acquired, expires, ttl,
                                   host, pid, program, note)
        VALUES (p_name, 0, 0, p_owner, v_token, p_attempt, p_now, p_now + p_ttl, p_ttl, p_host, p_pid,
                p_program, p_note)
        ON CONFLICT (name, slot) DO NOTHING;
        IF FOUND THEN
            UPDATE rowlock_tokens t SET token = v_token, granted = p_now WHERE t.name = p_name;
            RETURN v_token;
        END IF;
    END IF;
    RETURN 0;
END $$;

-- Grants all of several names or none: see acquire_all.sql. Names come in their order, so that no two
-- calls lock them the other way round.
CREATE OR REPLACE FUNCTION rowlock_grant_all(
    p_names text[], p_owners text[], p_attempts bigint[], p_tickets bigint[], p_permits integer,
    p_ttl bigint, p_host text, p_pid bigint, p_program text, p_note text, p_unfair boolean)
RETURNS TABLE (o_n bigint, o_token bigint, o_expires bigint, o_now bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint;
    v_tokens bigint[] := '{}';
    v_n bigint;
BEGIN
    RETURN QUERY
        SELECT u.n, l.token, l.expires, v_now
          FROM unnest(p_names, p_owners, p_attempts) WITH ORDINALITY AS u (name, owner, attempt, n)
          JOIN rowlock_locks l ON l.name = u.name AND l.owner = u.owner AND l.attempt = u.attempt
         WHERE l.expires > v_now
           AND NOT EXISTS (
                SELECT FROM unnest(p_names, p_owners, p_attempts) AS o (name, owner, attempt)
                 WHERE NOT EXISTS (SELECT FROM rowlock_locks m
                                    WHERE m.name = o.name AND m.owner = o.owner AND m.attempt = o.attempt
                                      AND m.expires > v_now))
         ORDER BY u.n;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT u.n INTO v_n
      FROM unnest(p_names, p_owners, p_attempts, p_tickets) WITH ORDINALITY
           AS u (name, owner, attempt, ticket, n)
     WHERE EXISTS (SELECT FROM rowlock_locks h
                    WHERE h.name = u.name AND h.expires > v_now AND h.owner <> u.owner
                      AND (p_permits = 0 OR h.slot = 0 OR h.permits <> p_permits
                           OR (p_permits > 0 AND
                               (SELECT pg_catalog.count(*) FROM rowlock_locks o WHERE o.name = u.name
                                   AND o.expires > v_now AND o.owner <> u.owner) >= p_permits)))
        OR (NOT p_unfair AND EXISTS (
                SELECT FROM rowlock_waiters w
                 WHERE w.name = u.name AND w.expires > v_now
                   AND (u.ticket = 0 OR (w.ticket, w.attempt) < (u.ticket, u.attempt))
                   AND NOT EXISTS (SELECT FROM rowlock_locks m WHERE m.name = u.name
                                      AND m.owner = u.owner AND m.expires > v_now)))
     ORDER BY u.n LIMIT 1;
    IF FOUND THEN
        RETURN QUERY SELECT v_n, NULL::bigint, NULL::bigint, v_now;
        RETURN;
    END IF;
    BEGIN
        v_n := 0;
        WHILE v_n < pg_catalog.array_length(p_names, 1) LOOP
            v_n := v_n + 1;
            v_tokens[v_n] := rowlock_grant(
                p_names[v_n], p_permits, p_owners[v_n], p_attempts[v_n], p_ttl, p_host, p_pid, p_program,
                p_note, p_tickets[v_n], v_now,
                EXISTS (SELECT FROM rowlock_locks s WHERE s.name = p_names[v_n]));
            IF v_tokens[v_n] IS NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'RL001';
            END IF;
        END LOOP;
    EXCEPTION WHEN SQLSTATE 'RL001' THEN
        RETURN QUERY SELECT v_n, NULL::bigint, NULL::bigint, v_now;
        RETURN;
    END;
    RETURN QUERY SELECT n, token, v_now + p_ttl, v_now FROM pg_catalog.unnest(v_tokens) WITH ORDINALITY AS g (token, n);
END $$;

-- See break.sql. After the token row is locked the grant is looked for anew, and then its row is the newest.
CREATE OR REPLACE FUNCTION rowlock_break(p_name text, p_token bigint)
RETURNS TABLE (o_name text, o_slot bigint, o_permits integer, o_owner text, o_token bigint, o_acquired bigint,
               o_expires bigint, o_ttl bigint, o_renewals bigint, o_host text, o_pid bigint, o_program text,
               o_note text, o_now bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM rowlock_tokens t WHERE t.name = p_name FOR NO KEY UPDATE;
    RETURN QUERY
        DELETE FROM rowlock_locks l
         WHERE l.name = p_name AND l.slot IN (0, p_token) AND l.token = p_token
        RETURNING l.name, l.slot, l.permits, l.owner, l.token, l.acquired, l.expires, l.ttl, l.renewals, l.host,
                  l.pid, l.program, l.note,
                  (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint;
    IF FOUND THEN
        UPDATE rowlock_tokens t SET token = t.token + 1 WHERE t.name = p_name;
        PERFORM rowlock_ring(p_name);
    END IF;
END $$;

-- See raise.sql. The floor's row is locked first: it waits for those that give a new name its counter, and
-- lets none begin. The statements after it see what they have committed.
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

INSERT INTO rowlock_meta (id, version, identity, token_floor)
VALUES (1, 1, pg_catalog.md5(pg_catalog.random()::text || pg_catalog.clock_timestamp()::text || pg_catalog.pg_backend_pid()::text), 0)
ON CONFLICT (id) DO NOTHING;
COMMIT;
