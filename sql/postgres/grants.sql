-- The least that a role needs. Example for a DBA: psql -v user=app -f grants.sql, after schema.sql.

GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_locks, rowlock_waiters TO :"user";
GRANT SELECT, INSERT, UPDATE ON rowlock_tokens TO :"user";
-- UPDATE on the floor is what lets PostgreSQL share-lock it when a new name gets its counter.
GRANT SELECT, UPDATE ON rowlock_meta TO :"user";
GRANT EXECUTE ON FUNCTION
    rowlock_grant(text, integer, text, bigint, bigint, text, bigint, text, text, bigint, bigint, boolean),
    rowlock_grant_all(text[], text[], bigint[], bigint[], integer, bigint, text, bigint, text, text, boolean),
    rowlock_look(text, integer, text, bigint, bigint, boolean, bigint),
    rowlock_make_room(text, integer, text, bigint), rowlock_guard(text, bigint, text, bigint),
    rowlock_enqueue(text, integer, text, bigint, bigint, text, text, bigint, text, text),
    rowlock_leave(text, bigint, boolean), rowlock_ring(text) TO :"user";

-- For rowlock_fence():
--   GRANT SELECT, INSERT, UPDATE ON rowlock_fences TO :"user";
-- For rowlock_once_claim() and the rest of its kind, and for rowlock_walk():
--   GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_once, rowlock_walks TO :"user";
-- A role that only looks (rowlock list, show, check):
--   GRANT SELECT ON rowlock_locks, rowlock_waiters, rowlock_tokens, rowlock_meta TO :"user";
-- A role that sweeps token counters and claimed keys too (rowlock sweep):
--   GRANT DELETE ON rowlock_tokens TO :"user";
--   GRANT SELECT, UPDATE, DELETE ON rowlock_once TO :"user";   or: rowlock sweep --once-older-than never
