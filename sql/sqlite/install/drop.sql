-- Removes rowlock's tables. All locks and all token counters are gone.
--
-- For a DBA. The library never runs this. After a new installation tokens start at 1 again, so
-- resources that remember tokens must forget them too.

/* rowlock:drop */
DROP TABLE IF EXISTS rowlock_locks;
DROP TABLE IF EXISTS rowlock_waiters;
DROP TABLE IF EXISTS rowlock_tokens;
DROP TABLE IF EXISTS rowlock_fences;
DROP TABLE IF EXISTS rowlock_once;
DROP TABLE IF EXISTS rowlock_walks;
DROP TABLE IF EXISTS rowlock_members;
DROP TABLE IF EXISTS rowlock_meta;
