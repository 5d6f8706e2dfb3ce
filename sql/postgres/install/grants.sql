-- A text that `rowlock install --print-grants` prints for a DBA: the least privileges of a role.
-- Each block begins with the roles that it is for. {user} is the role that gets them, {schema} the
-- schema of our tables.
--
-- - reader: list, show, check
-- - user: takes locks, waits, guards, fences, claims keys, walks
-- - operator: all that a user does, and sweeps, breaks, raises tokens
-- - sweeper: only `CALL rowlock_housekeeping`, for pg_cron
--
-- A grant needs the privileges that break needs, so a user could do by hand what break does. The
-- roles protect programs from accidents, not from each other. docs/OPERATIONS.md says what each can
-- do to others.

-- psql with GBK or SJIS could take the quote behind a name for a part of its last character.
-- what: reader user operator sweeper
BEGIN;
SET LOCAL client_encoding = 'UTF8';
REVOKE EXECUTE ON FUNCTION rowlock_break, rowlock_raise FROM PUBLIC;
REVOKE EXECUTE ON PROCEDURE rowlock_housekeeping FROM PUBLIC;
GRANT USAGE ON SCHEMA "{schema}" TO "{user}";

-- what: reader
GRANT SELECT ON rowlock_locks, rowlock_waiters, rowlock_tokens, rowlock_fences, rowlock_once,
    rowlock_walks, rowlock_members, rowlock_meta TO "{user}";

-- what: user operator
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_locks, rowlock_waiters, rowlock_once,
    rowlock_walks TO "{user}";
GRANT SELECT, INSERT, UPDATE ON rowlock_tokens, rowlock_fences TO "{user}";
GRANT EXECUTE ON FUNCTION rowlock_grant, rowlock_grant_usual, rowlock_grant_all, rowlock_look,
    rowlock_look_all, rowlock_new_counter, rowlock_make_room, rowlock_guard, rowlock_enqueue,
    rowlock_leave, rowlock_wake, rowlock_wake_many, rowlock_relax, rowlock_prove, rowlock_listen,
    rowlock_try TO "{user}";

-- PostgreSQL needs UPDATE on a column of the floor's row to share-lock it when a new name gets its
-- counter. A constraint keeps the column id as it is.
-- what: user
GRANT SELECT, UPDATE (moved) ON rowlock_members TO "{user}";
GRANT SELECT, UPDATE (id) ON rowlock_meta TO "{user}";

-- what: operator
GRANT DELETE ON rowlock_tokens TO "{user}";
GRANT SELECT, INSERT, UPDATE ON rowlock_members TO "{user}";
GRANT SELECT, UPDATE (id, token_floor, swept, identity) ON rowlock_meta TO "{user}";
GRANT EXECUTE ON FUNCTION rowlock_break, rowlock_raise TO "{user}";
GRANT EXECUTE ON PROCEDURE rowlock_housekeeping TO "{user}";

-- PostgreSQL needs UPDATE on a column of rows that a statement locks. note and granted decide about
-- no lock.
-- what: sweeper
GRANT SELECT, UPDATE (note), DELETE ON rowlock_locks, rowlock_waiters TO "{user}";
GRANT SELECT, UPDATE (granted), DELETE ON rowlock_tokens TO "{user}";
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_once TO "{user}";
GRANT SELECT, UPDATE (token_floor, swept) ON rowlock_meta TO "{user}";
GRANT EXECUTE ON PROCEDURE rowlock_housekeeping TO "{user}";

-- what: reader user operator sweeper
COMMIT;
