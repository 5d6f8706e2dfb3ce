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
-- permits: 0 exclusive, -1 shared, above 0 one of so many. slot: 0 for the exclusive grant, of which there
-- is one; the grant's token for the others.
CREATE TABLE IF NOT EXISTS rowlock_locks (
    name     VARBINARY(255) NOT NULL,
    slot     BIGINT NOT NULL,
    permits  INT NOT NULL,
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

-- permits: of the newest grant. While it is 0 no row of the name but that of slot 0 can be there.
-- fenced: grants with this token or a lower one guard nothing any more (raise.sql).
-- guards: guarded transactions that have changed the row, where several nodes take writes (guard.sql).
CREATE TABLE IF NOT EXISTS rowlock_tokens (
    name    VARBINARY(255) NOT NULL PRIMARY KEY,
    token   BIGINT NOT NULL,
    granted BIGINT NOT NULL,
    permits INT NOT NULL DEFAULT 0,
    fenced  BIGINT NOT NULL DEFAULT 0,
    guards  BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- Those who wait, in the order of their tickets, each under a lease of its own. Nothing here decides who
-- may hold a lock, only who is first.
CREATE TABLE IF NOT EXISTS rowlock_waiters (
    name    VARBINARY(255) NOT NULL,
    ticket  BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    permits INT NOT NULL,
    owner   VARBINARY(255) NOT NULL,
    since   BIGINT NOT NULL,
    expires BIGINT NOT NULL,
    host    VARBINARY(255) NOT NULL DEFAULT '',
    pid     BIGINT NOT NULL DEFAULT 0,
    program VARBINARY(255) NOT NULL DEFAULT '',
    note    VARBINARY(255) NOT NULL DEFAULT '',
    PRIMARY KEY (name, ticket, attempt)
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
    attempt     BIGINT NOT NULL,
    token       BIGINT NOT NULL,
    expires     BIGINT NOT NULL,
    done        TINYINT NOT NULL,
    result      BLOB,
    changed     BIGINT NOT NULL
) ENGINE = InnoDB;

-- Walks under way. position: the table, and the last key walked by; pending: keys of rows to be written once more.
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
    identity    VARBINARY(64) NOT NULL,
    token_floor BIGINT NOT NULL
) ENGINE = InnoDB;

DELIMITER //

-- Grants the lock, or says who holds it or that others are first, and writes nothing; see acquire.sql. Never
-- waits for a lock that a transaction keeps: token row and lock row are taken with SKIP LOCKED. The counter
-- of a new name is made in a transaction of its own, so that nobody keeps it locked uncommitted. It decides
-- all that rowlock_grant leaves to it.
--
-- p_ticket: of the waiter that this is, which leaves the line with its grant; 0: it never stood in it.
-- p_joins 1: be a part of the caller's transaction, which is neither begun nor ended here; what fails
-- goes back to where it stood. Only then may the counter of a new name stay uncommitted for long, and
-- only another such first grant of that name would wait for it. p_joins 2: one of several names, in the
-- transaction of rowlock_grant_all, which is told by @rlk_token.
CREATE PROCEDURE IF NOT EXISTS rowlock_decide(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_attempt BIGINT, p_ttl BIGINT,
    p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255),
    p_ticket BIGINT, p_unfair INT, p_joins INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
acquire: BEGIN
    DECLARE v_stands, v_behind, v_own, v_newest, v_others INT DEFAULT 0;
    DECLARE v_slot BIGINT DEFAULT 0;
    DECLARE v_next, v_last, v_first BIGINT;
    DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE CONTINUE HANDLER FOR 1062 SET v_next = NULL;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF p_joins = 0 THEN
            ROLLBACK;
        ELSEIF p_joins = 1 THEN
            BEGIN
                -- A deadlock has rolled the caller's transaction back, savepoint and all.
                DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
                ROLLBACK TO SAVEPOINT before_grant;
            END;
        END IF;
        RESIGNAL;
    END;

    IF p_joins = 1 THEN
        -- Before anything can fail: one of an earlier call would take with it what came since.
        SAVEPOINT before_grant;
    END IF;
    -- Where the exclusive row stands no other does. The rest is looked at only where there is something to see.
    SELECT t.token, t.permits,
           IF(l.slot IS NULL, 0, IF(l.expires > v_now AND (l.owner <> p_owner OR l.attempt = p_attempt), 2, 1)),
           IFNULL(l.expires > v_now AND l.owner = p_owner, 0),
           (SELECT MIN(ticket) FROM rowlock_waiters WHERE name = p_name)
      INTO v_last, v_newest, v_stands, v_own, v_first
      FROM rowlock_tokens t LEFT JOIN rowlock_locks l ON l.name = p_name AND l.slot = 0
     WHERE t.name = p_name;
    IF v_last IS NULL THEN
        -- It has no counter, but it may have a line.
        SELECT MIN(ticket) INTO v_first FROM rowlock_waiters WHERE name = p_name;
    END IF;
    IF v_newest <> 0 AND v_stands = 0 THEN
        SELECT IFNULL(MAX(IF(expires > v_now AND (owner <> p_owner OR attempt = p_attempt)
                             AND (p_permits = 0 OR permits <> p_permits OR attempt = p_attempt), 2, 1)), 0),
               IFNULL(SUM(expires > v_now AND owner <> p_owner), 0),
               IFNULL(SUM(expires > v_now AND owner = p_owner), 0),
               IFNULL(IFNULL(MAX(IF(expires > v_now AND owner = p_owner AND attempt = p_attempt, slot, NULL)),
                             MIN(IF(expires > v_now AND owner <> p_owner, slot, NULL))), 0)
          INTO v_stands, v_others, v_own, v_slot
          FROM rowlock_locks WHERE name = p_name;
    END IF;
    -- An owner that comes back for its own need not stand in line.
    IF v_first <= IF(p_ticket = 0, v_first, p_ticket) AND NOT p_unfair AND NOT v_own
       AND (v_stands < 2 OR p_ticket > 0) THEN
        SELECT 1 INTO v_behind FROM rowlock_waiters
         WHERE name = p_name AND ticket <= IF(p_ticket = 0, 9223372036854775807, p_ticket) AND expires > v_now
           AND (p_ticket = 0 OR ticket < p_ticket OR attempt < p_attempt) LIMIT 1;
    END IF;

    IF v_stands < 2 AND NOT v_behind AND (p_permits <= 0 OR v_others < p_permits) THEN
        IF NOT p_joins THEN
            IF p_permits <> 0 THEN
                -- At SERIALIZABLE the plain read below would lock, and wait.
                SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
            END IF;
            START TRANSACTION;
            SELECT token + 1, permits, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
              INTO v_next, v_newest, v_now
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
        -- Inside the caller's transaction there is no locking read of what may not be there: it would keep the
        -- gap locked until the caller ends.
        IF v_next IS NULL THEN
            IF v_last IS NULL THEN
                INSERT INTO rowlock_tokens (name, token, granted)
                SELECT p_name, token_floor, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
                  FROM rowlock_meta WHERE id = 1 LOCK IN SHARE MODE
                ON DUPLICATE KEY UPDATE granted = rowlock_tokens.granted;
                IF p_joins THEN
                    -- Still none: another made it after the caller's snapshot.
                    SELECT token INTO v_last FROM rowlock_tokens WHERE name = p_name;
                END IF;
            END IF;
            IF NOT p_joins THEN
                IF p_permits <> 0 THEN
                    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
                END IF;
                START TRANSACTION;
            END IF;
            SELECT token + 1, permits, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
              INTO v_next, v_newest, v_now
              FROM rowlock_tokens WHERE name = p_name FOR UPDATE SKIP LOCKED;
        END IF;
        IF v_next IS NOT NULL AND (p_permits <> 0 OR v_newest <> 0 OR v_stands <> 0) THEN
            -- See whether those that stand let another in, and remove what has expired and what this owner had,
            -- one row at a time by its key: to lock a range would be to lock what is beside it, which may be of
            -- another name. A row that somebody is changing at this moment may yet be renewed; then, as where
            -- the snapshot is older than the newest grant, it is no grant.
            BEGIN
                DECLARE v_over, v_locked, v_against INT DEFAULT 0;
                DECLARE v_one BIGINT;

                SELECT IFNULL(SUM(expires <= v_now OR owner = p_owner), 0),
                       IFNULL(SUM(expires > v_now AND owner <> p_owner), 0),
                       IFNULL(SUM(expires > v_now AND owner <> p_owner
                                  AND (p_permits = 0 OR slot = 0 OR permits <> p_permits)), 0)
                  INTO v_over, v_others, v_against
                  FROM rowlock_locks WHERE name = p_name;
                IF v_against > 0 OR (p_permits > 0 AND v_others >= p_permits)
                   OR (p_joins AND NOT v_last + 1 <=> v_next) THEN
                    SET v_next = NULL;
                END IF;
                WHILE v_over > 0 AND v_next IS NOT NULL DO
                    SET v_locked = 0, v_over = v_over - 1;
                    SELECT slot INTO v_one FROM rowlock_locks
                     WHERE name = p_name AND (expires <= v_now OR owner = p_owner) LIMIT 1;
                    SELECT 1 INTO v_locked FROM rowlock_locks
                     WHERE name = p_name AND slot = v_one AND (expires <= v_now OR owner = p_owner)
                       FOR UPDATE SKIP LOCKED;
                    IF v_locked THEN
                        DELETE FROM rowlock_locks WHERE name = p_name AND slot = v_one;
                    ELSE
                        SET v_next = NULL;
                    END IF;
                END WHILE;
            END;
        END IF;
        IF v_next IS NOT NULL THEN
            -- Where a rival's row stands by now, its key is in the way.
            INSERT INTO rowlock_locks (name, slot, permits, owner, token, attempt, acquired, expires, ttl,
                                       host, pid, program, note)
            VALUES (p_name, IF(p_permits = 0, 0, v_next), p_permits, p_owner, v_next, p_attempt, v_now, v_now + p_ttl,
                    p_ttl, p_host, p_pid, p_program, p_note);
        END IF;
        IF v_next IS NOT NULL THEN
            UPDATE rowlock_tokens SET token = v_next, granted = v_now, permits = p_permits WHERE name = p_name;
            IF p_ticket <> 0 THEN
                DELETE FROM rowlock_waiters WHERE name = p_name AND ticket = p_ticket AND attempt = p_attempt;
            END IF;
            IF p_joins = 2 THEN
                SET @rlk_token = v_next;
                LEAVE acquire;
            END IF;
            IF NOT p_joins THEN
                COMMIT;
            END IF;
            SELECT v_next, NULL, NULL, 0, v_now;
            LEAVE acquire;
        END IF;
        -- What was removed on the way goes back too.
        IF p_joins = 0 THEN
            ROLLBACK;
        ELSEIF p_joins = 1 THEN
            ROLLBACK TO SAVEPOINT before_grant;
        END IF;
    END IF;

    IF p_joins = 2 THEN
        SET @rlk_token = NULL;
        LEAVE acquire;
    END IF;
    IF v_behind AND v_stands < 2 AND NOT (p_permits > 0 AND v_others >= p_permits) THEN
        SELECT NULL, NULL, NULL, 1, v_now;
    ELSE
        SELECT NULL, attempt = p_attempt AND owner = p_owner, NULL, v_behind,
               TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), name, slot, permits, owner, token,
               acquired, expires, ttl, renewals, host, pid, program, note
          FROM rowlock_locks
         WHERE name = p_name AND slot = v_slot
           AND expires > TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
           AND (owner <> p_owner OR attempt = p_attempt)
           AND (p_permits = 0 OR slot = 0 OR permits <> p_permits OR attempt = p_attempt
                OR (p_permits > 0 AND v_others >= p_permits));
    END IF;
END //

-- The usual grant: exclusive, of a lock that has been granted before, that nobody holds and nobody waits for.
-- All else is for rowlock_decide. Each statement here costs 10 to 20 us, each variable and each condition one:
-- MIN() of a key is one descent of the index, and two of them are cheaper than one statement with two tables.
CREATE PROCEDURE IF NOT EXISTS rowlock_grant(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_attempt BIGINT, p_ttl BIGINT,
    p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255),
    p_ticket BIGINT, p_unfair INT, p_joins INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
acquire: BEGIN
    DECLARE v_slot, v_ticket, v_next, v_now BIGINT;

    IF p_permits = 0 AND p_joins = 0 THEN
        SELECT MIN(slot) INTO v_slot FROM rowlock_locks WHERE name = p_name;
        SELECT MIN(ticket) INTO v_ticket FROM rowlock_waiters WHERE name = p_name;
        IF v_slot IS NULL AND v_ticket IS NULL THEN
            BEGIN
                -- No such token row is free: another has it locked, it is not there, or was of another kind.
                DECLARE EXIT HANDLER FOR NOT FOUND ROLLBACK;
                -- A rival's row stands by now.
                DECLARE EXIT HANDLER FOR 1062 ROLLBACK;
                DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

                START TRANSACTION;
                SELECT token + 1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) INTO v_next, v_now
                  FROM rowlock_tokens WHERE name = p_name AND permits = 0 FOR UPDATE SKIP LOCKED;
                INSERT INTO rowlock_locks (name, slot, permits, owner, token, attempt, acquired, expires, ttl,
                                           host, pid, program, note)
                VALUES (p_name, 0, 0, p_owner, v_next, p_attempt, v_now, v_now + p_ttl, p_ttl, p_host, p_pid,
                        p_program, p_note);
                UPDATE rowlock_tokens SET token = v_next, granted = v_now WHERE name = p_name;
                COMMIT;
                SELECT v_next, NULL, NULL, 0, v_now;
                LEAVE acquire;
            END;
        END IF;
    END IF;
    CALL rowlock_decide(p_name, p_permits, p_owner, p_attempt, p_ttl, p_host, p_pid, p_program, p_note, p_ticket,
                        p_unfair, p_joins);
END //

-- Grants all of several names or none: see acquire_all.sql. Names come in their order, so that no two calls
-- lock them the other way round. The rows are read before COMMIT: once it is done, a break, a sweep or the
-- same owner elsewhere may remove one at any moment, which must not hide the others.
CREATE PROCEDURE IF NOT EXISTS rowlock_grant_all(
    p_claims LONGTEXT CHARACTER SET ascii, p_count INT, p_permits INT, p_ttl BIGINT, p_host VARBINARY(255),
    p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255), p_unfair INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
acquire: BEGIN
    DECLARE v_n INT DEFAULT 0;
    DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    DECLARE v_name, v_owner VARBINARY(255);
    DECLARE v_attempt, v_ticket BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
    START TRANSACTION;
    WHILE v_n < p_count DO
        SET v_name = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_claims, CONCAT('$[', v_n, '][0]')))),
            v_owner = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_claims, CONCAT('$[', v_n, '][1]')))),
            v_attempt = JSON_EXTRACT(p_claims, CONCAT('$[', v_n, '][2]')),
            v_ticket = JSON_EXTRACT(p_claims, CONCAT('$[', v_n, '][3]')),
            v_n = v_n + 1;
        CALL rowlock_decide(v_name, p_permits, v_owner, v_attempt, p_ttl, p_host, p_pid, p_program, p_note,
                            v_ticket, p_unfair, 2);
        IF @rlk_token IS NULL THEN
            -- Our own stands, if the question is sent again. Those of its grants that are gone are made anew.
            SELECT token INTO @rlk_token FROM rowlock_locks
             WHERE name = v_name AND owner = v_owner AND attempt = v_attempt AND expires > v_now LIMIT 1;
        END IF;
        IF @rlk_token IS NULL THEN
            ROLLBACK;
            SELECT v_n, NULL, v_now;
            LEAVE acquire;
        END IF;
    END WHILE;
    SELECT c.n, l.token, l.expires - l.ttl
      FROM JSON_TABLE(p_claims, '$[*]' COLUMNS (
               n FOR ORDINALITY, name VARCHAR(510) PATH '$[0]', owner VARCHAR(510) PATH '$[1]',
               attempt BIGINT PATH '$[2]')) c
      JOIN rowlock_locks l ON l.name = UNHEX(c.name) AND l.owner = UNHEX(c.owner) AND l.attempt = c.attempt
     ORDER BY c.n;
    COMMIT;
END //

-- Takes a ticket, or keeps the one that this attempt has: see enqueue.sql. The bell is taken first, so that
-- whoever sees the ticket finds it kept; and once, since user-level locks are counted. A server may refuse
-- them (Galera). A bell that nobody keeps, or our own session, does not wake us.
--
-- Both servers call a chain of more than 32 sessions that wait for one another a deadlock. So whoever comes
-- to a longer line waits for one further on, and asks again when the turn of that one is over.
CREATE PROCEDURE IF NOT EXISTS rowlock_enqueue(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_attempt BIGINT, p_lease BIGINT,
    p_ticket BIGINT, p_host VARBINARY(255), p_pid BIGINT, p_program VARBINARY(255), p_note VARBINARY(255),
    p_bells VARCHAR(48) CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    DECLARE v_ticket, v_ahead, v_over, v_skip, v_before, v_keeper BIGINT DEFAULT 0;
    DECLARE v_bell VARCHAR(64) CHARACTER SET ascii DEFAULT CONCAT(p_bells, LPAD(HEX(p_attempt), 16, '0'));
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    IF v_bell IS NOT NULL THEN
        BEGIN
            DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
            IF IFNULL(IS_USED_LOCK(v_bell), 0) <> CONNECTION_ID() THEN
                DO GET_LOCK(v_bell, 0);
            END IF;
        END;
    END IF;
    IF p_ticket <> 0 THEN
        UPDATE rowlock_waiters SET expires = v_now + p_lease + (expires = v_now + p_lease)
         WHERE name = p_name AND ticket = p_ticket AND attempt = p_attempt;
        IF ROW_COUNT() > 0 THEN
            SET v_ticket = p_ticket;
        END IF;
    ELSE
        SELECT ticket INTO v_ticket FROM rowlock_waiters WHERE name = p_name AND attempt = p_attempt LIMIT 1;
    END IF;
    IF v_ticket = 0 THEN
        SELECT GREATEST(v_now, IFNULL(MAX(ticket), 0) + 1) INTO v_ticket FROM rowlock_waiters WHERE name = p_name;
        INSERT INTO rowlock_waiters (name, ticket, attempt, permits, owner, since, expires, host, pid, program, note)
        VALUES (p_name, v_ticket, p_attempt, p_permits, p_owner, v_now, v_now + p_lease, p_host, p_pid,
                p_program, p_note);
    END IF;
    SELECT IFNULL(SUM(expires > v_now), 0), IFNULL(SUM(expires <= v_now), 0) INTO v_ahead, v_over
      FROM rowlock_waiters
     WHERE name = p_name AND (ticket < v_ticket OR (ticket = v_ticket AND attempt < p_attempt));
    IF v_over > 0 THEN
        DELETE w FROM (
            SELECT name, ticket, attempt FROM rowlock_waiters
             WHERE name = p_name AND ticket < v_ticket AND expires <= v_now LIMIT 1000000 FOR UPDATE SKIP LOCKED) o
          STRAIGHT_JOIN rowlock_waiters w ON w.name = o.name AND w.ticket = o.ticket AND w.attempt = o.attempt;
    END IF;
    IF v_bell IS NOT NULL THEN
        SET v_skip = IF(v_ahead < 16, 0, v_ahead DIV 3);
        SELECT attempt INTO v_before FROM rowlock_waiters
         WHERE name = p_name AND expires > v_now
           AND (ticket < v_ticket OR (ticket = v_ticket AND attempt < p_attempt))
         ORDER BY ticket DESC, attempt DESC LIMIT v_skip, 1;
        IF v_before = 0 THEN
            SELECT attempt INTO v_before FROM rowlock_locks WHERE name = p_name AND slot = 0 AND expires > v_now;
        END IF;
        SET v_keeper = IFNULL(IS_USED_LOCK(CONCAT(p_bells, LPAD(HEX(v_before), 16, '0'))), CONNECTION_ID());
    END IF;
    SELECT v_ticket, v_ahead, IF(v_keeper NOT IN (0, CONNECTION_ID()), v_before, 0);
END //

-- Removes the grant that one attempt made: see withdraw.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_withdraw(p_name VARBINARY(255), p_owner VARBINARY(255), p_attempt BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token, v_slot BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    SELECT token INTO v_token FROM rowlock_tokens WHERE name = p_name LOCK IN SHARE MODE;
    SELECT slot INTO v_slot FROM rowlock_locks
     WHERE name = p_name AND owner = p_owner AND attempt = p_attempt LIMIT 1;
    DELETE FROM rowlock_locks WHERE name = p_name AND slot = v_slot AND owner = p_owner AND attempt = p_attempt;
    SELECT ROW_COUNT();
END //

-- Lets go of a bell, and of a grant before it: see ring.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_ring(
    p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), p_token BIGINT,
    p_bell VARCHAR(64) CHARACTER SET ascii)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_gone INT DEFAULT 0;

    IF p_name IS NOT NULL THEN
        DELETE FROM rowlock_locks WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token;
        SET v_gone = ROW_COUNT();
    END IF;
    DO RELEASE_LOCK(p_bell);
    SELECT v_gone;
END //

-- See downgrade.sql.
CREATE PROCEDURE IF NOT EXISTS rowlock_downgrade(
    p_name VARBINARY(255), p_owner VARBINARY(255), p_token BIGINT, p_permits INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token BIGINT;
    DECLARE v_moved INT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    SELECT token INTO v_token FROM rowlock_tokens WHERE name = p_name FOR UPDATE;
    UPDATE rowlock_locks SET slot = token, permits = p_permits
     WHERE name = p_name AND slot = 0 AND owner = p_owner AND token = p_token;
    SET v_moved = ROW_COUNT();
    IF v_moved > 0 THEN
        UPDATE rowlock_tokens SET permits = p_permits WHERE name = p_name;
    END IF;
    COMMIT;
    SELECT v_moved > 0;
END //

-- See guard.sql. p_changes 1: change the token row at the end, because other nodes see no lock of ours.
--
-- The plain read is as old as the caller's snapshot. If the token that it sees is not the newest, the lock
-- row is share-locked instead, which keeps its lease from being renewed until the caller ends. The same
-- where the token row is changed: a plain read would see our own change, and not how old the snapshot is.
CREATE PROCEDURE IF NOT EXISTS rowlock_guard(
    p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), p_token BIGINT, p_changes INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token, v_seen, v_fenced BIGINT;
    DECLARE v_stands INT DEFAULT 0;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;

    IF p_changes THEN
        SELECT token, fenced INTO v_token, v_fenced FROM rowlock_tokens WHERE name = p_name FOR UPDATE;
    ELSE
        SELECT token, fenced INTO v_token, v_fenced FROM rowlock_tokens WHERE name = p_name LOCK IN SHARE MODE;
    END IF;
    IF v_token = p_token THEN
        SET v_stands = 1;
    ELSEIF p_slot <> 0 AND p_token > v_fenced THEN
        SELECT token INTO v_seen FROM rowlock_tokens WHERE name = p_name;
        IF v_seen = v_token AND NOT p_changes THEN
            SELECT 1 INTO v_stands FROM rowlock_locks
             WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token;
        ELSE
            SELECT 1 INTO v_stands FROM rowlock_locks
             WHERE name = p_name AND slot = p_slot AND owner = p_owner AND token = p_token LOCK IN SHARE MODE;
        END IF;
    END IF;
    IF p_changes AND v_stands THEN
        UPDATE rowlock_tokens SET guards = guards + 1 WHERE name = p_name;
    END IF;
    SELECT v_token, v_stands;
END //

-- See renew.sql. The row is read back because UPDATE returns nothing here.
CREATE PROCEDURE IF NOT EXISTS rowlock_renew(
    p_name VARBINARY(255), p_slot BIGINT, p_owner VARBINARY(255), p_token BIGINT, p_ttl BIGINT)
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
                           name VARCHAR(510) PATH '$[0]', slot BIGINT PATH '$[1]',
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
                   n FOR ORDINALITY, name VARCHAR(510) PATH '$[0]', slot BIGINT PATH '$[1]',
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
CREATE PROCEDURE IF NOT EXISTS rowlock_break(p_name VARBINARY(255), p_token BIGINT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_token BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    START TRANSACTION;
    SELECT token INTO v_token FROM rowlock_tokens WHERE name = p_name FOR UPDATE;
    SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
           TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
      FROM rowlock_locks
     WHERE name = p_name AND slot IN (0, p_token) AND token = p_token FOR UPDATE;
    DELETE FROM rowlock_locks
     WHERE name = p_name AND slot IN (0, p_token) AND token = p_token;
    IF ROW_COUNT() > 0 THEN
        UPDATE rowlock_tokens SET token = v_token + 1 WHERE name = p_name;
    END IF;
    COMMIT;
END //

-- See fold.sql. The candidates are read without locks; each is then locked by its key and looked at
-- again: a grant since then has changed its token, however old it may be, and one in flight holds it locked.
CREATE PROCEDURE IF NOT EXISTS rowlock_fold(p_idle BIGINT, p_batch INT, p_dry INT)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_name VARBINARY(255);
    DECLARE v_done, v_count INT DEFAULT 0;
    DECLARE v_cut, v_token, v_floor BIGINT;
    DECLARE idle CURSOR FOR
        SELECT t.name, t.token FROM rowlock_tokens t LEFT JOIN rowlock_locks l ON l.name = t.name
         WHERE t.granted <= v_cut AND l.name IS NULL ORDER BY t.name LIMIT p_batch;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;

    SET v_cut = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - p_idle;
    START TRANSACTION;
    SELECT token_floor INTO v_floor FROM rowlock_meta WHERE id = 1 FOR UPDATE;
    OPEN idle;
    each_name: LOOP
        SET v_done = 0;
        FETCH idle INTO v_name, v_token;
        IF v_done THEN
            LEAVE each_name;
        END IF;
        SELECT token INTO v_token FROM rowlock_tokens
         WHERE name = v_name AND token = v_token FOR UPDATE SKIP LOCKED;
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
    UPDATE rowlock_tokens SET token = v_floor, fenced = v_floor;
    COMMIT;
    SELECT v_floor;
END //

DELIMITER ;

INSERT INTO rowlock_meta (id, version, identity, token_floor)
VALUES (1, 1, REPLACE(UUID(), '-', ''), 0)
ON DUPLICATE KEY UPDATE id = rowlock_meta.id;
