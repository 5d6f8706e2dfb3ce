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
    DECLARE v_now BIGINT DEFAULT {clock};
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
            SELECT token + 1, permits, {clock}
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
                SELECT p_name, token_floor, {clock}
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
            SELECT token + 1, permits, {clock}
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
               {clock}, name, slot, permits, owner, token,
               acquired, expires, ttl, renewals, host, pid, program, note
          FROM rowlock_locks
         WHERE name = p_name AND slot = v_slot
           AND expires > {clock}
           AND (owner <> p_owner OR attempt = p_attempt)
           AND (p_permits = 0 OR slot = 0 OR permits <> p_permits OR attempt = p_attempt
                OR (p_permits > 0 AND v_others >= p_permits));
    END IF;
END;
