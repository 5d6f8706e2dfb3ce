-- The tables and functions of rowlock, version 1, for PostgreSQL 12 and later.
--
-- `rowlock install` runs this, and `rowlock install --print` prints it. The words in braces are
-- files of this folder, in this order. It may run again, and in many sessions at once: it locks
-- rowlock_meta, and every statement does nothing if its work is done. If two sessions create that
-- table at the same moment, one fails because the table exists. It runs again.
--
-- A role that may create objects in a schema of search_path may put operators and functions there.
-- So functions are named with pg_catalog, and operands have exactly the types of the operators in
-- pg_catalog, which are found first then. pg_catalog has no float8 * integer, no oid = regclass and
-- no integer || text. Give each operand its type.

/* rowlock:schema */
BEGIN;
SET LOCAL client_min_messages = warning;
{tables}
{rowlock_relax}
{rowlock_prove}
{rowlock_wake}
{rowlock_wake_many}
{rowlock_leave}
{rowlock_enqueue}
{rowlock_listen}
{rowlock_guard}
{rowlock_make_room}
{rowlock_look}
{rowlock_new_counter}
{rowlock_grant}
{rowlock_grant_usual}
{rowlock_try}
{rowlock_look_all}
{rowlock_grant_all}
{rowlock_break}
{rowlock_raise}
{rowlock_housekeeping}
INSERT INTO rowlock_meta (id, version, compat, code, identity, token_floor, swept)
VALUES (1, 1, 1, 1,
        pg_catalog.md5(pg_catalog.random()::text || pg_catalog.clock_timestamp()::text
                       || pg_catalog.pg_backend_pid()::text),
        (SELECT coalesce(pg_catalog.max(t.token), 0) FROM rowlock_tokens t), -{clock})
ON CONFLICT (id) DO NOTHING;
COMMIT;
