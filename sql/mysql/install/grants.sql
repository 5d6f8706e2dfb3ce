-- Grants each kind of role the least privileges that it needs. For a DBA, after schema.sql, and
-- after each `rowlock upgrade` that has made procedures. Replace the names of the database and the
-- users, and `rowlock_` if the URL has a rowlock_prefix. Leave out the roles that you do not have.
--
-- - reader ('watch'): list, show, check
-- - user ('app'): takes locks, waits, guards, fences, claims keys, walks
-- - operator ('ops'): all that a user does, and sweeps, breaks, raises tokens
-- - sweeper ('sweep'): only an event that calls rowlock_housekeeping. Lock the account, so that no
--   program logs in as it: CREATE USER 'sweep'@'localhost' ACCOUNT LOCK
--
-- Procedures have the rights of their caller, so a user could do by hand what break does. The roles
-- protect programs from accidents, not from each other. docs/OPERATIONS.md says what each can do to
-- others.

GRANT SELECT ON appdb.rowlock_locks TO 'watch'@'%';
GRANT SELECT ON appdb.rowlock_waiters TO 'watch'@'%';
GRANT SELECT ON appdb.rowlock_tokens TO 'watch'@'%';
GRANT SELECT ON appdb.rowlock_fences TO 'watch'@'%';
GRANT SELECT ON appdb.rowlock_once TO 'watch'@'%';
GRANT SELECT ON appdb.rowlock_walks TO 'watch'@'%';
GRANT SELECT ON appdb.rowlock_members TO 'watch'@'%';
GRANT SELECT ON appdb.rowlock_meta TO 'watch'@'%';

-- With MySQL Group Replication grant this too. The library then skips a server without a majority:
--     GRANT SELECT ON performance_schema.replication_group_members
--         TO 'watch'@'%', 'app'@'%', 'ops'@'%';

GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_locks TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_waiters TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_once TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_walks TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE ON appdb.rowlock_tokens TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE ON appdb.rowlock_fences TO 'app'@'%';
GRANT SELECT, UPDATE (moved) ON appdb.rowlock_members TO 'app'@'%';
-- MySQL 8 needs UPDATE on a column of the floor's row to share-lock it when a new name gets its
-- counter. This column decides nothing.
GRANT SELECT, UPDATE (swept) ON appdb.rowlock_meta TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_decide TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_look_beside TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_make_grant TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_undo_grant TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_new_counter TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_make_room TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_all TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_at_once TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_many TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_usual_many TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_rest TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_new_counters TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_release_at_once TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_release_many TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew_many TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_enqueue_many TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_places TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_clear_queues TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_enqueue TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_wakeup_before TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_wake TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_withdraw TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_guard TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew_all TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_fence TO 'app'@'%';

GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_locks TO 'ops'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_waiters TO 'ops'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_once TO 'ops'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_walks TO 'ops'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_tokens TO 'ops'@'%';
GRANT SELECT, INSERT, UPDATE ON appdb.rowlock_fences TO 'ops'@'%';
GRANT SELECT, INSERT, UPDATE ON appdb.rowlock_members TO 'ops'@'%';
GRANT SELECT, UPDATE (token_floor, swept, identity) ON appdb.rowlock_meta TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_decide TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_look_beside TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_make_grant TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_undo_grant TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_new_counter TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_make_room TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_all TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_at_once TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_many TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_usual_many TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_rest TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_new_counters TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_release_at_once TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_release_many TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew_many TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_enqueue_many TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_places TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_clear_queues TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_enqueue TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_wakeup_before TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_wake TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_withdraw TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_guard TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew_all TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_fence TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_break TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_fold TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_raise TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_fold_batch TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_sweep_batch TO 'ops'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_housekeeping TO 'ops'@'%';

-- With it the operator's check sees the event of the sweeper. It covers all events of the database:
-- leave it out if that is too much.
GRANT EVENT ON appdb.* TO 'ops'@'%';

GRANT EVENT ON appdb.* TO 'sweep'@'localhost';
GRANT SELECT, DELETE ON appdb.rowlock_locks TO 'sweep'@'localhost';
GRANT SELECT, DELETE ON appdb.rowlock_waiters TO 'sweep'@'localhost';
GRANT SELECT, DELETE ON appdb.rowlock_tokens TO 'sweep'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_once TO 'sweep'@'localhost';
GRANT SELECT, UPDATE (token_floor, swept) ON appdb.rowlock_meta TO 'sweep'@'localhost';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_fold_batch TO 'sweep'@'localhost';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_sweep_batch TO 'sweep'@'localhost';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_housekeeping TO 'sweep'@'localhost';
