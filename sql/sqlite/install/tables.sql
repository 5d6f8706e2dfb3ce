-- The tables. What each column means is in docs/ARCHITECTURE.md. Names are compared byte by byte:
-- BINARY.

-- permits: 0 exclusive, -1 shared, above 0 one of so many. slot: 0 for the exclusive grant, of
-- which there is one; the grant's token for the others.
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

-- permits: of the newest grant. While it is 0 no row of the name but that of slot 0 can be there.
-- After 2^63 - 1 SQLite would go on with a number of floating point, which the constraint refuses.
-- fenced: grants with this token or a lower one guard nothing any more (raise.sql).
CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    token   INTEGER NOT NULL CONSTRAINT no_tokens_left CHECK (typeof(token) = 'integer'),
    granted INTEGER NOT NULL,
    permits INTEGER NOT NULL DEFAULT 0,
    fenced  INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- Those who wait, in the order of their tickets, each under a lease of its own. wakeup: the address
-- of the waiter's socket; '' for none. Nothing here decides who may hold a lock, only who is first.
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

-- Resources that have no column of their own for the newest token they have seen.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
    token    INTEGER NOT NULL,
    seen     INTEGER NOT NULL
) WITHOUT ROWID;

-- Keys that were claimed, and what came of them. token: of
-- the claimer's lock, 0: none. changed: when that was, by which they are swept.
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

-- Walks under way. position: the table, and the last key walked by; pending: keys of rows to be
-- written once more.
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
