-- The tables and functions of rowlock, version 1, for PostgreSQL 12 and later.
--
-- What `rowlock install` runs and `rowlock install --print` prints. The words in braces are files
-- of this folder, in this order. Harmless when run again, and by many at once: rowlock_meta is
-- locked, so that one passes at a time, and every statement does nothing where its work is done. Of
-- two that create it at the same moment one is told that it is there; run again.
--
-- A role that may create in a schema of search_path may put operators and functions there. So
-- functions are named with pg_catalog, and operators have operands of exactly the types that
-- pg_catalog has them for: those are found first. It has no float8 * integer, no oid = regclass, no
-- integer || text: give each operand its type.

/* rowlock:schema */
BEGIN;
SET LOCAL client_min_messages = warning;
{tables}
{rowlock_wake}
{rowlock_leave}
{rowlock_enqueue}
{rowlock_guard}
{rowlock_make_room}
{rowlock_look}
{rowlock_new_counter}
{rowlock_grant}
{rowlock_grant_usual}
{rowlock_look_all}
{rowlock_grant_all}
{rowlock_break}
{rowlock_raise}
INSERT INTO rowlock_meta (id, version, compat, code, identity, token_floor)
VALUES (1, 1, 1, 1,
        pg_catalog.md5(pg_catalog.random()::text || pg_catalog.clock_timestamp()::text
                       || pg_catalog.pg_backend_pid()::text), 0)
ON CONFLICT (id) DO NOTHING;
COMMIT;
