-- Grants each kind of role the least privileges that it needs. For a DBA, after schema.sql. Leave
-- out the roles that you do not have:
--     psql -d app -v reader=watch -v user=app -v operator=ops -v sweeper=sweep -f grants.sql
-- With `rowlock_schema=locks` or `rowlock_prefix=job_` in the URL also:
--     -v schema=locks -v prefix=job_
--
-- - reader: list, show, check
-- - user: takes locks, waits, guards, fences, claims keys, walks
-- - operator: all that a user does, and sweeps, breaks, raises tokens
-- - sweeper: only `CALL rowlock_housekeeping`, for pg_cron
--
-- A grant needs the privileges that break needs, so a user could do by hand what break does. The
-- roles protect programs from accidents, not from each other. docs/OPERATIONS.md says what each can
-- do to others.

\if :{?schema}
\else
\set schema public
\endif
\if :{?prefix}
\else
\set prefix rowlock_
\endif
\set locks :prefix locks
\set waiters :prefix waiters
\set tokens :prefix tokens
\set fences :prefix fences
\set once :prefix once
\set walks :prefix walks
\set members :prefix members
\set meta :prefix meta
\set grant :prefix grant
\set grant_usual :prefix grant_usual
\set grant_all :prefix grant_all
\set look :prefix look
\set look_all :prefix look_all
\set new_counter :prefix new_counter
\set make_room :prefix make_room
\set guard :prefix guard
\set enqueue :prefix enqueue
\set leave :prefix leave
\set wake :prefix wake
\set wake_many :prefix wake_many
\set relax :prefix relax
\set prove :prefix prove
\set listen :prefix listen
\set try :prefix try
\set break :prefix break
\set raise :prefix raise
\set housekeeping :prefix housekeeping
BEGIN;
SET LOCAL search_path = :"schema", pg_catalog;

REVOKE EXECUTE ON FUNCTION :"break", :"raise" FROM PUBLIC;
REVOKE EXECUTE ON PROCEDURE :"housekeeping" FROM PUBLIC;

\if :{?reader}
GRANT USAGE ON SCHEMA :"schema" TO :"reader";
GRANT SELECT ON :"locks", :"waiters", :"tokens", :"fences", :"once", :"walks", :"members",
    :"meta" TO :"reader";
\endif

\if :{?user}
GRANT USAGE ON SCHEMA :"schema" TO :"user";
GRANT SELECT, INSERT, UPDATE, DELETE ON :"locks", :"waiters", :"once", :"walks" TO :"user";
GRANT SELECT, INSERT, UPDATE ON :"tokens", :"fences" TO :"user";
GRANT SELECT, UPDATE (moved) ON :"members" TO :"user";
-- PostgreSQL needs UPDATE on a column of the floor's row to share-lock it when a new name gets its
-- counter. A constraint keeps this column as it is.
GRANT SELECT, UPDATE (id) ON :"meta" TO :"user";
GRANT EXECUTE ON FUNCTION :"grant", :"grant_usual", :"grant_all", :"look", :"look_all",
    :"new_counter", :"make_room", :"guard", :"enqueue", :"leave", :"wake", :"wake_many", :"relax",
    :"prove", :"listen", :"try" TO :"user";
\endif

\if :{?operator}
GRANT USAGE ON SCHEMA :"schema" TO :"operator";
GRANT SELECT, INSERT, UPDATE, DELETE ON :"locks", :"waiters", :"once", :"walks",
    :"tokens" TO :"operator";
GRANT SELECT, INSERT, UPDATE ON :"fences", :"members" TO :"operator";
GRANT SELECT, UPDATE (id, token_floor, swept, identity) ON :"meta" TO :"operator";
GRANT EXECUTE ON FUNCTION :"grant", :"grant_usual", :"grant_all", :"look", :"look_all",
    :"new_counter", :"make_room", :"guard", :"enqueue", :"leave", :"wake", :"wake_many", :"relax",
    :"prove", :"listen", :"try", :"break", :"raise" TO :"operator";
GRANT EXECUTE ON PROCEDURE :"housekeeping" TO :"operator";
\endif

\if :{?sweeper}
GRANT USAGE ON SCHEMA :"schema" TO :"sweeper";
-- PostgreSQL needs UPDATE on a column of rows that a statement locks. These decide about no lock.
GRANT SELECT, UPDATE (note), DELETE ON :"locks", :"waiters" TO :"sweeper";
GRANT SELECT, UPDATE (granted), DELETE ON :"tokens" TO :"sweeper";
GRANT SELECT, INSERT, UPDATE, DELETE ON :"once" TO :"sweeper";
GRANT SELECT, UPDATE (token_floor, swept) ON :"meta" TO :"sweeper";
GRANT EXECUTE ON PROCEDURE :"housekeeping" TO :"sweeper";
\endif
COMMIT;
