-- The tables. docs/ARCHITECTURE.md explains each column.
--
-- - Names are bytes, so no collation makes two of them equal.
-- - The engine is InnoDB, because locks must survive a crash.
-- - A table has one unique key. With that, ON DUPLICATE KEY UPDATE takes the fewest locks.
-- - There is no index on expires: sweeps and releases would lock in opposite orders.

-- permits: 0 exclusive, -1 shared, N one of at most N. slot: 0 for the exclusive grant, else the
-- grant's token.
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

-- permits: of the newest grant. While it is 0, the name has at most one lock row, with slot 0.
-- fenced: a grant with this token or a lower one can no longer guard a transaction (raise.sql).
-- guards: how many guarded transactions have changed the row. They do if several nodes take writes
-- (guard.sql).
CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    VARBINARY(255) NOT NULL PRIMARY KEY,
    token   BIGINT NOT NULL,
    granted BIGINT NOT NULL,
    permits INT NOT NULL DEFAULT 0,
    fenced  BIGINT NOT NULL DEFAULT 0,
    guards  BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- Waiters in the order of their tickets. Each ticket has its own lease. This table decides only the
-- order, not who may hold a lock.
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

-- The newest token seen, for resources without a column of their own for it.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource VARBINARY(255) NOT NULL PRIMARY KEY,
    token    BIGINT NOT NULL,
    seen     BIGINT NOT NULL
) ENGINE = InnoDB;

-- Claimed once keys, and their results. token: of the claimer's lock, 0: none. changed: the last
-- change, which a sweep goes by.
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

-- A quorum that this database is a member of: a row for each member. self: it is this database.
-- mark: the newest mark of that member that was written down here. started: of self, when the
-- server had been started at that time. moved: when that mark last moved on, as
-- far as this database knows.
CREATE TABLE IF NOT EXISTS rowlock_members (
    member  INT NOT NULL PRIMARY KEY,
    members INT NOT NULL,
    quorum  VARBINARY(64) NOT NULL,
    self    TINYINT NOT NULL,
    mark    VARBINARY(64) NOT NULL,
    started BIGINT NOT NULL,
    moved   BIGINT NOT NULL
) ENGINE = InnoDB;

-- The checkpoints of walks. position: the table, and the last key walked by. pending: keys of rows
-- that met a conflict.
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
