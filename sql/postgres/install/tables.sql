-- The tables. docs/ARCHITECTURE.md explains each column. The first table is locked, so one session
-- installs at a time. Tables of a later version have more columns. upgrade/upgrade.sql adds them at
-- the end of each table.

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

-- The key is the only index. With an index on expires a renewal could not be a HOT update.
-- Rows come and go all the time, so dead ones are vacuumed early. Between two vacuums PostgreSQL
-- frees the room of deleted rows when it looks at a page with less free room than a tenth, or than
-- fillfactor reserves. Inserts stop before the reserve is touched. So with a fillfactor of 90 or
-- less no room is ever freed in a page that only has inserts and deletes: the table then grows ten
-- times as fast. 95 leaves room for single renewals.
-- permits: 0 exclusive, -1 shared, N one of at most N. slot: 0 for the exclusive grant, else the
-- grant's token.
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     text COLLATE "C" NOT NULL,
    slot     bigint NOT NULL,
    permits  integer NOT NULL,
    owner    text COLLATE "C" NOT NULL,
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
) WITH (fillfactor = 95, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- permits: of the newest grant. While it is 0, the name has at most one lock row, with slot 0.
-- fenced: a grant with this token or a lower one can no longer guard a transaction (raise.sql).
CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    text COLLATE "C" PRIMARY KEY,
    token   bigint NOT NULL,
    granted bigint NOT NULL,
    permits integer NOT NULL DEFAULT 0,
    fenced  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- Waiters in the order of their tickets. Each ticket has its own lease. wakeup: the channel that
-- the waiter listens to, '': none. This table decides only the order, not who may hold a lock.
CREATE TABLE IF NOT EXISTS rowlock_waiters (
    name    text COLLATE "C" NOT NULL,
    ticket  bigint NOT NULL,
    request bigint NOT NULL,
    permits integer NOT NULL,
    owner   text COLLATE "C" NOT NULL,
    since   bigint NOT NULL,
    expires bigint NOT NULL,
    wakeup  text NOT NULL DEFAULT '',
    host    text NOT NULL DEFAULT '',
    pid     bigint NOT NULL DEFAULT 0,
    program text NOT NULL DEFAULT '',
    note    text NOT NULL DEFAULT '',
    PRIMARY KEY (name, ticket, request)
) WITH (fillfactor = 95, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
        autovacuum_vacuum_cost_delay = 0);

-- The newest token seen, for resources without a column of their own for it.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource text COLLATE "C" PRIMARY KEY CHECK (pg_catalog.octet_length(resource) BETWEEN 1
                                                 AND 255),
    token    bigint NOT NULL,
    seen     bigint NOT NULL
) WITH (fillfactor = 50);

-- Claimed once keys, and their results. token: of the claimer's lock, 0: none. changed: the last
-- change, which a sweep goes by.
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

-- A quorum that this database is a member of: a row for each member. self: it is this database.
-- mark: the newest mark of that member that was written down here. started: of self, when the
-- server had been started at that time. moved: when that mark last moved on, as
-- far as this database knows.
CREATE TABLE IF NOT EXISTS rowlock_members (
    member  integer PRIMARY KEY,
    members integer NOT NULL,
    quorum  text COLLATE "C" NOT NULL,
    self    boolean NOT NULL,
    mark    text COLLATE "C" NOT NULL,
    started bigint NOT NULL,
    moved   bigint NOT NULL
);

-- The checkpoints of walks. position: the table, and the last key walked by. pending: keys of rows
-- that met a conflict.
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
