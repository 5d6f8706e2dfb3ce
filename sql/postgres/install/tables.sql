-- The tables. What each column means is in docs/ARCHITECTURE.md. The first is locked, so that one
-- session installs at a time. Tables of a later version have more columns: upgrade/upgrade.sql
-- adds them, the last of each table.

CREATE TABLE IF NOT EXISTS rowlock_meta (
    id          integer PRIMARY KEY CHECK (id = 1),
    version     integer NOT NULL,
    compat      integer NOT NULL,
    code        integer NOT NULL,
    identity    text NOT NULL,
    token_floor bigint NOT NULL,
    swept       bigint NOT NULL DEFAULT 0
);
LOCK TABLE rowlock_meta IN SHARE ROW EXCLUSIVE MODE;

-- No index but the key: one on expires would cost every renewal its HOT update. Rows come and go
-- all the time, so dead ones are cleared early. permits: 0 exclusive, -1 shared, above 0 one of so
-- many. slot: 0 for the exclusive grant, of which there is one; the grant's token for the others.
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 255),
    slot     bigint NOT NULL,
    permits  integer NOT NULL,
    owner    text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(owner) BETWEEN 1 AND 255),
    token    bigint NOT NULL,
    request  bigint NOT NULL,
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

-- Those who wait, in the order of their tickets, each under a lease of its own. wakeup: the channel
-- that the waiter listens to; '' for none. Nothing here decides who may hold a lock, only who is
-- first.
CREATE TABLE IF NOT EXISTS rowlock_waiters (
    name    text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 255),
    ticket  bigint NOT NULL,
    request bigint NOT NULL,
    permits integer NOT NULL,
    owner   text COLLATE "C" NOT NULL CHECK (pg_catalog.octet_length(owner) BETWEEN 1 AND 255),
    since   bigint NOT NULL,
    expires bigint NOT NULL,
    wakeup  text NOT NULL DEFAULT '',
    host    text NOT NULL DEFAULT '',
    pid     bigint NOT NULL DEFAULT 0,
    program text NOT NULL DEFAULT '',
    note    text NOT NULL DEFAULT '',
    PRIMARY KEY (name, ticket, request)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- Resources that have no column of their own for the newest token they have seen.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource text COLLATE "C" PRIMARY KEY CHECK (pg_catalog.octet_length(resource) BETWEEN 1
                                                 AND 255),
    token    bigint NOT NULL,
    seen     bigint NOT NULL
) WITH (fillfactor = 50);

-- Keys that were claimed, and what came of them. token: of
-- the claimer's lock, 0: none. changed: when that was, by which they are swept.
CREATE TABLE IF NOT EXISTS rowlock_once (
    name        text COLLATE "C" PRIMARY KEY CHECK (pg_catalog.octet_length(name) BETWEEN 1
                                                    AND 255),
    fingerprint text COLLATE "C" NOT NULL,
    claim       bigint NOT NULL,
    token       bigint NOT NULL,
    expires     bigint NOT NULL,
    done        boolean NOT NULL,
    result      bytea,
    changed     bigint NOT NULL
);

-- Walks under way. position: the table, and the last key walked by; pending: keys of rows to be
-- written once more.
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
