-- The tables and procedures of rowlock, version 1, for MySQL 8.0.29 and MariaDB 10.6, and later ones.
--
-- Run by `rowlock install` and rowlock_install(), or by a DBA:  mariadb DATABASE < schema.sql
-- Harmless when run again, and by many at once: every statement does nothing where its work is done.
-- What each column means is in docs/ARCHITECTURE.md. Every word beginning with rowlock_ is a name of
-- ours: the library writes its database and prefix in front of it.
--
-- Names are bytes: no collation makes two of them equal. InnoDB always: anything else would not
-- survive a crash. One unique key a table: ON DUPLICATE KEY UPDATE needs no more locks than that. No
-- index on expires: it would make sweeps and releases lock in opposite orders.

/* rowlock:schema */
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     VARBINARY(255) NOT NULL,
    slot     INT NOT NULL,
    owner    VARBINARY(255) NOT NULL,
    token    BIGINT NOT NULL,
    attempt  BIGINT NOT NULL,
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

CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    VARBINARY(255) NOT NULL PRIMARY KEY,
    token   BIGINT NOT NULL,
    granted BIGINT NOT NULL
) ENGINE = InnoDB;

-- Resources that have no column of their own for the newest token they have seen.
CREATE TABLE IF NOT EXISTS rowlock_fences (
    resource VARBINARY(255) NOT NULL PRIMARY KEY,
    token    BIGINT NOT NULL,
    seen     BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS rowlock_meta (
    id          INT NOT NULL PRIMARY KEY,
    version     INT NOT NULL,
    identity    VARBINARY(64) NOT NULL,
    token_floor BIGINT NOT NULL
) ENGINE = InnoDB;

DELIMITER //

-- Grants the lock, or says who holds it and writes nothing; see acquire.sql. Never waits for a lock
-- that a transaction keeps: token row and lock row are taken with SKIP LOCKED. The counter of a new
-- name is made in a transaction of its own, so that nobody keeps it locked uncommitted. Each statement
-- here costs some 20 us on MariaDB: the usual grant takes seven.
--
-- p_joins: be a part of the caller's transaction, which is neither begun nor ended here; what fails
-- goes back to where it stood. Only then may the counter of a new name stay uncommitted for long, and
-- only another such first grant of that name would wait for it.
CREATE PROCEDURE IF NOT EXISTS rowlock_grant(
    p_name VARBINARY(255), p_slot INT, p_owner VARBINARY(255), p_attempt BIGINT, p_ttl BIGINT,
    p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255), p_joins INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
acquire: BEGIN
    DECLARE v_stands INT DEFAULT 0;
    DECLARE v_now, v_next, v_last BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF NOT p_joins THEN
            ROLLBACK;
        ELSE
            BEGIN
                -- A deadlock has rolled the caller's transaction back, savepoint and all.
                DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
                ROLLBACK TO SAVEPOINT before_grant;
            END;
        END IF;
        RESIGNAL;
    END;

    IF p_joins THEN
        -- Before anything can fail: one of an earlier call would take with it what came since.
        SAVEPOINT before_grant;
    END IF;
    SELECT IF(expires > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
              AND (owner <> p_owner OR attempt = p_attempt), 2, 1) INTO v_stands
      FROM rowlock_locks WHERE name = p_name AND slot = p_slot;

    IF v_stands < 2 THEN
        IF p_joins THEN
            -- No locking read of what may not be there: it would keep the gap locked until the caller ends.
            SELECT token INTO v_last FROM rowlock_tokens WHERE name = p_name;
        ELSE
            START TRANSACTION;
            SELECT token + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) INTO v_next, v_now
              FROM rowlock_tokens WHERE name = p_name FOR UPDATE SKIP LOCKED;
            IF v_next IS NULL THEN
                -- Locked by another, or not there: then COMMIT lets go of the gap where it would be. Whether
                -- it is there is read uncommitted: to insert what a transaction has inserted would be to
                -- wait for that. SELECT INTO, because inside an IF it would be a locking read, and wait too.
                COMMIT;
                SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
                START TRANSACTION;
                SELECT token INTO v_last FROM rowlock_tokens WHERE name = p_name;
                COMMIT;
            END IF;
        END IF;
        IF v_next IS NULL THEN
            IF v_last IS NULL THEN
                INSERT INTO rowlock_tokens (name, token, granted)
                SELECT p_name, token_floor, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
                  FROM rowlock_meta WHERE id = 1 LOCK IN SHARE MODE
                ON DUPLICATE KEY UPDATE granted = rowlock_tokens.granted;
            END IF;
            IF NOT p_joins THEN
                START TRANSACTION;
            END IF;
            SELECT token + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) INTO v_next, v_now
              FROM rowlock_tokens WHERE name = p_name FOR UPDATE SKIP LOCKED;
        END IF;
        IF v_next IS NOT NULL AND v_stands = 1 THEN
            SET v_stands = 0;
            SELECT 1 INTO v_stands FROM rowlock_locks WHERE name = p_name AND slot = p_slot
               FOR UPDATE SKIP LOCKED;
            IF v_stands = 0 THEN
                SET v_next = NULL;
            END IF;
        END IF;
        IF v_next IS NOT NULL THEN
            -- expires and owner, which the tests read, are assigned last; and owner so that it makes
            -- no difference whether it sees their new values (SIMULTANEOUS_ASSIGNMENT).
            INSERT INTO rowlock_locks (name, slot, owner, token, attempt, acquired, expires, ttl,
                                       host, pid, program, note)
            VALUES (p_name, p_slot, p_owner, v_next, p_attempt, v_now, v_now + p_ttl, p_ttl,
                    p_host, p_pid, p_program, p_note)
            ON DUPLICATE KEY UPDATE
                token = IF(expires <= v_now OR owner = p_owner, v_next, token),
                attempt = IF(expires <= v_now OR owner = p_owner, p_attempt, attempt),
                acquired = IF(expires <= v_now OR owner = p_owner, v_now, acquired),
                ttl = IF(expires <= v_now OR owner = p_owner, p_ttl, ttl),
                lapsed = IF(expires <= v_now OR owner = p_owner, 0, lapsed),
                renewals = IF(expires <= v_now OR owner = p_owner, 0, renewals),
                host = IF(expires <= v_now OR owner = p_owner, p_host, host),
                pid = IF(expires <= v_now OR owner = p_owner, p_pid, pid),
                program = IF(expires <= v_now OR owner = p_owner, p_program, program),
                note = IF(expires <= v_now OR owner = p_owner, p_note, note),
                expires = IF(expires <= v_now OR owner = p_owner, v_now + p_ttl, expires),
                owner = IF(token = v_next OR expires <= v_now, p_owner, owner);
            -- Whether the row is ours now is read from the row: a client can make ROW_COUNT() of an
            -- upsert count rows that were found and not changed. This UPDATE always changes its row.
            UPDATE rowlock_tokens t JOIN rowlock_locks l
                ON l.name = t.name AND l.slot = p_slot AND l.token = v_next
               SET t.token = v_next, t.granted = v_now WHERE t.name = p_name;
            IF ROW_COUNT() > 0 THEN
                IF NOT p_joins THEN
                    COMMIT;
                END IF;
                SELECT 1, p_name, p_slot, p_owner, v_next, v_now, v_now + p_ttl, p_ttl, 0,
                       p_host, p_pid, p_program, p_note, v_now;
                LEAVE acquire;
            END IF;
        END IF;
        IF NOT p_joins THEN
            COMMIT;
        END IF;
    END IF;

    SELECT attempt = p_attempt AND owner = p_owner, name, slot, owner, token, acquired, expires, ttl,
           renewals, host, pid, program, note, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
      FROM rowlock_locks WHERE name = p_name AND slot = p_slot;
END //

-- See renew.sql. The row is read back because UPDATE returns nothing here.
CREATE PROCEDURE IF NOT EXISTS rowlock_renew(
    p_name VARBINARY(255), p_slot INT, p_owner VARBINARY(255), p_token BIGINT, p_ttl BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    UPDATE rowlock_locks
       SET lapsed = GREATEST(0, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - expires),
           expires = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + IF(p_ttl > 0, p_ttl, ttl),
           ttl = IF(p_ttl > 0, p_ttl, ttl), renewals = renewals + 1
     WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token;
    SELECT expires, lapsed, expires - ttl FROM rowlock_locks
     WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token;
END //

-- See renew_all.sql. Derived and limited, so that the locks are taken, or passed over, before the update.
-- FORCE INDEX, because a scan of a small table would wait for rows that are not asked for. JSON_TABLE in
-- a derived table of its own: beside a locking clause MySQL refuses it (error 3569).
CREATE PROCEDURE IF NOT EXISTS rowlock_renew_all(p_leases LONGTEXT CHARACTER SET ascii, p_count INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

    UPDATE (
        SELECT l.name, l.slot, w.ttl
          FROM (SELECT UNHEX(j.name) AS name, j.slot, UNHEX(j.owner) AS owner, j.token, j.ttl
                  FROM JSON_TABLE(p_leases, '$[*]' COLUMNS (
                           name VARCHAR(510) PATH '$[0]', slot INT PATH '$[1]',
                           owner VARCHAR(510) PATH '$[2]', token BIGINT PATH '$[3]',
                           ttl BIGINT PATH '$[4]')) j) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
             ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
         LIMIT 1000000 FOR UPDATE SKIP LOCKED) mine
      STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = mine.name AND l.slot = mine.slot
       SET l.lapsed = GREATEST(0, v_now - l.expires), l.expires = v_now + mine.ttl, l.ttl = mine.ttl,
           l.renewals = l.renewals + 1;
    IF ROW_COUNT() = p_count THEN
        SELECT 0, v_now;
    ELSE
        -- What was not renewed now has an older lease, or one that another call has made shorter.
        SELECT w.n, v_now
          FROM JSON_TABLE(p_leases, '$[*]' COLUMNS (
                   n FOR ORDINALITY, name VARCHAR(510) PATH '$[0]', slot INT PATH '$[1]',
                   owner VARCHAR(510) PATH '$[2]', token BIGINT PATH '$[3]', ttl BIGINT PATH '$[4]')) w
          STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = UNHEX(w.name) AND l.slot = w.slot
               AND l.owner = UNHEX(w.owner) AND l.token = w.token
         WHERE l.expires - l.ttl >= v_now AND l.ttl >= w.ttl;
    END IF;
END //

-- See fence.sql. A locking read, which sees the newest row at any isolation.
CREATE PROCEDURE IF NOT EXISTS rowlock_fence(p_resource VARBINARY(255), p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    INSERT INTO rowlock_fences (resource, token, seen)
    VALUES (p_resource, p_token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
    ON DUPLICATE KEY UPDATE
        seen = IF(token <= p_token, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), seen),
        token = GREATEST(token, p_token);
    SELECT token = p_token FROM rowlock_fences WHERE resource = p_resource FOR UPDATE;
END //

-- See break.sql. Waits for the token row, that is for a grant in flight or a guarded transaction.
CREATE PROCEDURE IF NOT EXISTS rowlock_break(p_name VARBINARY(255), p_slot INT, p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    SELECT token INTO v_token FROM rowlock_tokens WHERE name = p_name FOR UPDATE;
    SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
           TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
      FROM rowlock_locks
     WHERE name = p_name AND slot = p_slot AND (p_token = 0 OR token = p_token) FOR UPDATE;
    DELETE FROM rowlock_locks
     WHERE name = p_name AND slot = p_slot AND (p_token = 0 OR token = p_token);
    IF ROW_COUNT() > 0 THEN
        UPDATE rowlock_tokens SET token = v_token + 1 WHERE name = p_name;
    END IF;
    COMMIT;
END //

-- See fold.sql. The candidates are read without locks; each is then locked by its key and looked at
-- again: a grant since then has changed its granted, and one in flight holds it locked.
CREATE PROCEDURE IF NOT EXISTS rowlock_fold(p_idle BIGINT, p_batch INT, p_dry INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_name VARBINARY(255);
    DECLARE v_done, v_count INT DEFAULT 0;
    DECLARE v_cut, v_token, v_floor BIGINT;
    DECLARE idle CURSOR FOR
        SELECT t.name FROM rowlock_tokens t LEFT JOIN rowlock_locks l ON l.name = t.name
         WHERE t.granted <= v_cut AND l.name IS NULL ORDER BY t.name LIMIT p_batch;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    SET v_cut = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - p_idle;
    START TRANSACTION;
    SELECT token_floor INTO v_floor FROM rowlock_meta WHERE id = 1 FOR UPDATE;
    OPEN idle;
    each_name: LOOP
        SET v_done = 0;
        FETCH idle INTO v_name;
        IF v_done THEN
            LEAVE each_name;
        END IF;
        SELECT token INTO v_token FROM rowlock_tokens
         WHERE name = v_name AND granted <= v_cut FOR UPDATE SKIP LOCKED;
        IF NOT v_done THEN
            SET v_count = v_count + 1;
            IF NOT p_dry THEN
                SET v_floor = GREATEST(v_floor, v_token);
                DELETE FROM rowlock_tokens WHERE name = v_name;
            END IF;
        END IF;
    END LOOP;
    CLOSE idle;
    UPDATE rowlock_meta SET token_floor = v_floor WHERE id = 1;
    COMMIT;
    SELECT v_count;
END //

-- See raise.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_raise(p_by BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_floor, v_highest BIGINT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    SELECT token_floor INTO v_floor FROM rowlock_meta WHERE id = 1 FOR UPDATE;
    SELECT COALESCE(MAX(token), 0) INTO v_highest FROM rowlock_tokens FOR UPDATE;
    SET v_floor = GREATEST(v_floor, v_highest) + p_by;
    UPDATE rowlock_meta SET token_floor = v_floor WHERE id = 1;
    UPDATE rowlock_tokens SET token = v_floor;
    COMMIT;
    SELECT v_floor;
END //

DELIMITER ;

INSERT INTO rowlock_meta (id, version, identity, token_floor)
VALUES (1, 1, REPLACE(UUID(), '-', ''), 0)
ON DUPLICATE KEY UPDATE id = rowlock_meta.id;
