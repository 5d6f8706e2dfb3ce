-- Remove rowlock's tables and function: every lock and, for good, every token counter. For a DBA; the
-- library never runs this. After a new installation tokens start at 1 again, so resources that
-- remember tokens must forget them too.

DROP FUNCTION IF EXISTS rowlock_grant(text, integer, text, bigint, bigint, text, bigint, text, text, bigint, boolean);
DROP TABLE IF EXISTS rowlock_locks, rowlock_tokens, rowlock_fences, rowlock_meta;
