-- Remove rowlock's tables and procedures: every lock and, for good, every token counter. For a DBA;
-- the library never runs this. After a new installation tokens start at 1 again, so resources that
-- remember tokens must forget them too.

DROP PROCEDURE IF EXISTS rowlock_acquire;
DROP PROCEDURE IF EXISTS rowlock_renew;
DROP PROCEDURE IF EXISTS rowlock_break;
DROP PROCEDURE IF EXISTS rowlock_fold;
DROP TABLE IF EXISTS rowlock_locks, rowlock_tokens, rowlock_meta;
