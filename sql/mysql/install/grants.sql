-- A text that `rowlock install --print-grants` prints for a DBA: the least privileges of a role.
-- Each block begins with the roles that it is for. {user} and {host} are the account that gets
-- them, {schema} is our database. GRANT EVENT takes _ in its name for any character. With a
-- backslash before it the account would lose what other grants on that name give. Grant them again
-- after each `rowlock upgrade` that has made procedures.
--
-- - reader: list, show, check
-- - user: takes locks, waits, guards, fences, claims keys, walks
-- - operator: all that a user does, and sweeps, breaks, raises tokens
-- - sweeper: only an event that calls rowlock_housekeeping. Lock the account, so that no program
--   logs in as it: CREATE USER 'sweep'@'localhost' ACCOUNT LOCK
--
-- With MySQL Group Replication grant all but the sweeper this too. The library then skips a server
-- without a majority: GRANT SELECT ON performance_schema.replication_group_members
--
-- Procedures have the rights of their caller, so a user could do by hand what break does. The roles
-- protect programs from accidents, not from each other. docs/OPERATIONS.md says what each can do to
-- others.

-- MariaDB would make an account that is not there, without a password, if sql_mode allows that.
-- what: reader user operator sweeper
/*M! SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_CREATE_USER') */;

-- what: reader
GRANT SELECT ON rowlock_locks TO '{user}'@'{host}';
GRANT SELECT ON rowlock_waiters TO '{user}'@'{host}';
GRANT SELECT ON rowlock_tokens TO '{user}'@'{host}';
GRANT SELECT ON rowlock_fences TO '{user}'@'{host}';
GRANT SELECT ON rowlock_once TO '{user}'@'{host}';
GRANT SELECT ON rowlock_walks TO '{user}'@'{host}';
GRANT SELECT ON rowlock_members TO '{user}'@'{host}';
GRANT SELECT ON rowlock_meta TO '{user}'@'{host}';

-- what: user operator
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_locks TO '{user}'@'{host}';
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_waiters TO '{user}'@'{host}';
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_once TO '{user}'@'{host}';
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_walks TO '{user}'@'{host}';
GRANT SELECT, INSERT, UPDATE ON rowlock_tokens TO '{user}'@'{host}';
GRANT SELECT, INSERT, UPDATE ON rowlock_fences TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_grant TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_decide TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_look_beside TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_make_grant TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_undo_grant TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_new_counter TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_make_room TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_grant_all TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_grant_at_once TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_grant_many TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_grant_usual_many TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_grant_rest TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_new_counters TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_release_at_once TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_release_many TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_renew_many TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_enqueue_many TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_places TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_clear_queues TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_enqueue TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_wakeup_before TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_wake TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_withdraw TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_guard TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_renew TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_renew_all TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_fence TO '{user}'@'{host}';

-- MySQL 8 needs UPDATE on a column of the floor's row to share-lock it when a new name gets its
-- counter. The column swept decides nothing.
-- what: user
GRANT SELECT, UPDATE (moved) ON rowlock_members TO '{user}'@'{host}';
GRANT SELECT, UPDATE (swept) ON rowlock_meta TO '{user}'@'{host}';

-- With EVENT the operator's check sees the event of the sweeper. It covers all events of the
-- database: leave it out if that is too much.
-- what: operator
GRANT DELETE ON rowlock_tokens TO '{user}'@'{host}';
GRANT SELECT, INSERT, UPDATE ON rowlock_members TO '{user}'@'{host}';
GRANT SELECT, UPDATE (token_floor, swept, identity) ON rowlock_meta TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_break TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_fold TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_raise TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_fold_batch TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_sweep_batch TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_housekeeping TO '{user}'@'{host}';
GRANT EVENT ON `{schema}`.* TO '{user}'@'{host}';

-- what: sweeper
GRANT EVENT ON `{schema}`.* TO '{user}'@'{host}';
GRANT SELECT, DELETE ON rowlock_locks TO '{user}'@'{host}';
GRANT SELECT, DELETE ON rowlock_waiters TO '{user}'@'{host}';
GRANT SELECT, DELETE ON rowlock_tokens TO '{user}'@'{host}';
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_once TO '{user}'@'{host}';
GRANT SELECT, UPDATE (token_floor, swept) ON rowlock_meta TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_fold_batch TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_sweep_batch TO '{user}'@'{host}';
GRANT EXECUTE ON PROCEDURE rowlock_housekeeping TO '{user}'@'{host}';
