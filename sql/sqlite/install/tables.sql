-- The tables. docs/ARCHITECTURE.md explains each column. Names are compared byte by byte: BINARY.

-- permits: 0 exclusive, -1 shared, N one of at most N. slot: 0 for the exclusive grant, else the
-- grant's token.
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     TEXT COLLATE BINARY NOT NULL,
    slot     INTEGER NOT NULL,
    permits  INTEGER NOT NULL,
    owner    TEXT COLLATE BINARY NOT NULL,
    token    INTEGER NOT NULL,
    request  INTEGER NOT NULL,
    acquired INTEGER NOT NULL,
    expires  INTEGER NOT NULL,
    ttl      INTEGER NOT NULL,
    lapsed   INTEGER NOT NULL DEFAULT 0,
    renewals INTEGER NOT NULL DEFAULT 0,
    host     TEXT NOT NULL DEFAULT '',
    pid      INTEGER NOT NULL DEFAULT 0,
    program  TEXT NOT NULL DEFAULT '',
    note     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (name, slot)
) WITHOUT ROWID;

-- permits: of the newest grant. While it is 0, the name has at most one lock row, with slot 0.
-- SQLite goes on with a float after 2^63 - 1. The constraint refuses it.
-- fenced: a grant with this token or a lower one can no longer guard a transaction (raise.sql).
CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    token   INTEGER NOT NULL CONSTRAINT no_tokens_left CHECK (typeof(token) = 'integer'),
    granted INTEGER NOT NULL,
    permits INTEGER NOT NULL DEFAULT 0,
    fenced  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Waiters in the order of their tickets. Each ticket has its own lease. wakeup: the address of the
-- waiter's socket, '': none. This table decides only the order, not who may hold a lock.
CREATE TABLE IF NOT EXISTS rowlock_waiters (
    name    TEXT COLLATE BINARY NOT NULL,
    ticket  INTEGER NOT NULL,
    request INTEGER NOT NULL,
    permits INTEGER NOT NULL,
    owner   TEXT COLLATE BINARY NOT NULL,
    since   INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    wakeup  TEXT NOT NULL DEFAULT '',
    host    TEXT NOT NULL DEFAULT '',
    pid     INTEGER NOT NULL DEFAULT 0,
    program TEXT NOT NULL DEFAULT '',
    note    TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (name, ticket, request)
) WITHOUT ROWID;

-- The newest token seen, for resources without a column of their own for it.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    token    INTEGER NOT NULL,
    seen     INTEGER NOT NULL
) WITHOUT ROWID;

-- Claimed once keys, and their results. token: of the claimer's lock, 0: none. changed: the last
-- change, which a sweep goes by.
CREATE TABLE IF NOT EXISTS rowlock_once (
    name        TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    fingerprint TEXT COLLATE BINARY NOT NULL,
    claim       INTEGER NOT NULL,
    token       INTEGER NOT NULL,
    expires     INTEGER NOT NULL,
    done        INTEGER NOT NULL,
    result      BLOB,
    changed     INTEGER NOT NULL
) WITHOUT ROWID;

-- A quorum that this database is a member of: a row for each member. self: it is this database.
-- mark: the newest mark of that member that was written down here. started: 0, since a
-- file has no server. moved: when that mark last moved on, as far as this database knows.
CREATE TABLE IF NOT EXISTS rowlock_members (
    member  INTEGER PRIMARY KEY,
    members INTEGER NOT NULL,
    quorum  TEXT COLLATE BINARY NOT NULL,
    self    INTEGER NOT NULL,
    mark    TEXT COLLATE BINARY NOT NULL,
    started INTEGER NOT NULL,
    moved   INTEGER NOT NULL
);

-- The checkpoints of walks. position: the table, and the last key walked by. pending: keys of rows
-- that met a conflict.
CREATE TABLE IF NOT EXISTS rowlock_walks (
    name      TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    step      INTEGER NOT NULL,
    position  TEXT NOT NULL,
    pending   TEXT NOT NULL,
    walked    INTEGER NOT NULL,
    written   INTEGER NOT NULL,
    untouched INTEGER NOT NULL,
    conflicts INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    changed   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS rowlock_meta (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    version     INTEGER NOT NULL,
    compat      INTEGER NOT NULL,
    code        INTEGER NOT NULL,
    identity    TEXT NOT NULL,
    token_floor INTEGER NOT NULL CONSTRAINT no_tokens_left CHECK (typeof(token_floor) = 'integer'),
    swept       INTEGER NOT NULL DEFAULT 0
);
