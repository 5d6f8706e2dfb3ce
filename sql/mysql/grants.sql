-- The least that a user needs. Example for a DBA; put your database and user in the place of these.

GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_locks TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_waiters TO 'app'@'%';
GRANT SELECT, INSERT, UPDATE ON appdb.rowlock_tokens TO 'app'@'%';
-- UPDATE on the floor is what lets MySQL 8 share-lock it when a new name gets its counter.
GRANT SELECT, UPDATE ON appdb.rowlock_meta TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_decide TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_grant_all TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_enqueue TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_ring TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_withdraw TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_downgrade TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_guard TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew TO 'app'@'%';
GRANT EXECUTE ON PROCEDURE appdb.rowlock_renew_all TO 'app'@'%';

-- For rowlock_fence():
--   GRANT SELECT, INSERT, UPDATE ON appdb.rowlock_fences TO 'app'@'%';
--   GRANT EXECUTE ON PROCEDURE appdb.rowlock_fence TO 'app'@'%';
-- For rowlock_once_claim() and the rest of its kind, and for rowlock_walk():
--   GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_once TO 'app'@'%';
--   GRANT SELECT, INSERT, UPDATE, DELETE ON appdb.rowlock_walks TO 'app'@'%';
-- A user that only looks (rowlock list, show, check):
--   GRANT SELECT ON appdb.rowlock_locks TO 'watch'@'%';  and the same on the other six tables
-- A user that also breaks grants, sweeps token counters and raises them after a failover:
--   GRANT EXECUTE ON PROCEDURE appdb.rowlock_break TO 'ops'@'%';
--   GRANT EXECUTE ON PROCEDURE appdb.rowlock_fold TO 'ops'@'%';
--   GRANT EXECUTE ON PROCEDURE appdb.rowlock_raise TO 'ops'@'%';
--   GRANT DELETE ON appdb.rowlock_tokens TO 'ops'@'%';
--   GRANT SELECT, UPDATE, DELETE ON appdb.rowlock_once TO 'ops'@'%';   or: rowlock sweep --once-older-than never
