-- Grants each kind of role the least privileges that it needs. For a DBA, after schema.sql. Leave
-- out the roles that you do not have:
--     psql -d app -v reader=watch -v user=app -v operator=ops -v sweeper=sweep -f grants.sql
--
-- - reader: list, show, check
-- - user: takes locks, waits, guards, fences, claims keys, walks
-- - operator: all that a user does, and sweeps, breaks, raises tokens
-- - sweeper: only `CALL rowlock_housekeeping`, for pg_cron
--
-- A grant needs the privileges that break needs, so a user could do by hand what break does. The
-- roles protect programs from accidents, not from each other.

REVOKE EXECUTE ON FUNCTION rowlock_break, rowlock_raise FROM PUBLIC;
REVOKE EXECUTE ON PROCEDURE rowlock_housekeeping FROM PUBLIC;

\if :{?reader}
GRANT SELECT ON rowlock_locks, rowlock_waiters, rowlock_tokens, rowlock_fences, rowlock_once,
    rowlock_walks, rowlock_members, rowlock_meta TO :"reader";
\endif

\if :{?user}
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_locks, rowlock_waiters, rowlock_once,
    rowlock_walks TO :"user";
GRANT SELECT, INSERT, UPDATE ON rowlock_tokens, rowlock_fences TO :"user";
GRANT SELECT, UPDATE (moved) ON rowlock_members TO :"user";
-- PostgreSQL needs UPDATE on the floor to share-lock it when a new name gets its counter.
GRANT SELECT, UPDATE ON rowlock_meta TO :"user";
GRANT EXECUTE ON FUNCTION rowlock_grant, rowlock_grant_usual, rowlock_grant_all, rowlock_look,
    rowlock_look_all, rowlock_new_counter, rowlock_make_room, rowlock_guard,
    rowlock_enqueue, rowlock_leave, rowlock_wake, rowlock_wake_many, rowlock_listen,
    rowlock_try TO :"user";
\endif

\if :{?operator}
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_locks, rowlock_waiters, rowlock_once, rowlock_walks,
    rowlock_tokens TO :"operator";
GRANT SELECT, INSERT, UPDATE ON rowlock_fences, rowlock_members TO :"operator";
GRANT SELECT, UPDATE ON rowlock_meta TO :"operator";
GRANT EXECUTE ON FUNCTION rowlock_grant, rowlock_grant_usual, rowlock_grant_all, rowlock_look,
    rowlock_look_all, rowlock_new_counter, rowlock_make_room, rowlock_guard, rowlock_enqueue,
    rowlock_leave, rowlock_wake, rowlock_wake_many, rowlock_listen, rowlock_try,
    rowlock_break, rowlock_raise TO :"operator";
GRANT EXECUTE ON PROCEDURE rowlock_housekeeping TO :"operator";
\endif

\if :{?sweeper}
-- PostgreSQL needs UPDATE on rows that a statement locks.
GRANT SELECT, UPDATE, DELETE ON rowlock_locks, rowlock_waiters, rowlock_tokens TO :"sweeper";
GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_once TO :"sweeper";
GRANT SELECT, UPDATE ON rowlock_meta TO :"sweeper";
GRANT EXECUTE ON PROCEDURE rowlock_housekeeping TO :"sweeper";
\endif
