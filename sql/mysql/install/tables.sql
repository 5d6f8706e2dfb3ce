-- The tables. What each column means is in docs/ARCHITECTURE.md.
--
-- Names are bytes: no collation makes two of them equal. InnoDB always: anything else would not
-- survive a crash. One unique key a table: ON DUPLICATE KEY UPDATE needs no more locks than that.
-- No index on expires: it would make sweeps and releases lock in opposite orders.

-- permits: 0 exclusive, -1 shared, above 0 one of so many. slot: 0 for the exclusive grant, of
-- which there is one; the grant's token for the others.
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     VARBINARY(255) NOT NULL,
    slot     BIGINT NOT NULL,
    permits  INT NOT NULL,
    owner    VARBINARY(255) NOT NULL,
    token    BIGINT NOT NULL,
    request  BIGINT NOT NULL,
    acquired BIGINT NOT NULL,
    expires  BIGINT NOT NULL,
    ttl      BIGINT NOT NULL,
    lapsed   BIGINT NOT NULL DEFAULT 0,
    renewals BIGINT NOT NULL DEFAULT 0,
    host     VARBINARY(255) NOT NULL DEFAULT '',
    pid      BIGINT NOT NULL DEFAULT 0,
    program  VARBINARY(255) NOT NULL DEFAULT '',
    note     VARBINARY(255) NOT NULL DEFAULT '',
    PRIMARY KEY (name, slot)
) ENGINE = InnoDB;

-- permits: of the newest grant. While it is 0 no row of the name but that of slot 0 can be there.
-- fenced: grants with this token or a lower one guard nothing any more (raise.sql).
-- guards: guarded transactions that have changed the row, where several nodes take writes
-- (guard.sql).
CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    VARBINARY(255) NOT NULL PRIMARY KEY,
    token   BIGINT NOT NULL,
    granted BIGINT NOT NULL,
    permits INT NOT NULL DEFAULT 0,
    fenced  BIGINT NOT NULL DEFAULT 0,
    guards  BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- Those who wait, in the order of their tickets, each under a lease of its own. Nothing here
-- decides who may hold a lock, only who is first.
CREATE TABLE IF NOT EXISTS rowlock_waiters (
    name    VARBINARY(255) NOT NULL,
    ticket  BIGINT NOT NULL,
    request BIGINT NOT NULL,
    permits INT NOT NULL,
    owner   VARBINARY(255) NOT NULL,
    since   BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    host    VARBINARY(255) NOT NULL DEFAULT '',
    pid     BIGINT NOT NULL DEFAULT 0,
    program VARBINARY(255) NOT NULL DEFAULT '',
    note    VARBINARY(255) NOT NULL DEFAULT '',
    PRIMARY KEY (name, ticket, request)
) ENGINE = InnoDB;

-- Resources that have no column of their own for the newest token they have seen.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource VARBINARY(255) NOT NULL PRIMARY KEY,
    token    BIGINT NOT NULL,
    seen     BIGINT NOT NULL
) ENGINE = InnoDB;

-- Keys that were claimed, and what came of them. token: of
-- the claimer's lock, 0: none. changed: when that was, by which they are swept.
CREATE TABLE IF NOT EXISTS rowlock_once (
    name        VARBINARY(255) NOT NULL PRIMARY KEY,
    fingerprint VARBINARY(255) NOT NULL,
    claim       BIGINT NOT NULL,
    token       BIGINT NOT NULL,
    expires     BIGINT NOT NULL,
    done        TINYINT NOT NULL,
    result      BLOB,
    changed     BIGINT NOT NULL
) ENGINE = InnoDB;

-- Walks under way. position: the table, and the last key walked by; pending: keys of rows to be
-- written once more.
CREATE TABLE IF NOT EXISTS rowlock_walks (
    name      VARBINARY(255) NOT NULL PRIMARY KEY,
    step      BIGINT NOT NULL,
    position  LONGBLOB NOT NULL,
    pending   LONGBLOB NOT NULL,
    walked    BIGINT NOT NULL,
    written   BIGINT NOT NULL,
    untouched BIGINT NOT NULL,
    conflicts BIGINT NOT NULL,
    failed    BIGINT NOT NULL,
    changed   BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS rowlock_meta (
    id          INT NOT NULL PRIMARY KEY,
    version     INT NOT NULL,
    compat      INT NOT NULL,
    code        INT NOT NULL,
    identity    VARBINARY(64) NOT NULL,
    token_floor BIGINT NOT NULL,
    swept       BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB;
