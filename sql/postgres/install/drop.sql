-- Removes rowlock's tables and functions. All locks and all token counters are gone.
--
-- For a DBA. The library never runs this. After a new installation tokens start at 1 again, so
-- resources that remember tokens must forget them too.

/* rowlock:drop */
DROP FUNCTION IF EXISTS rowlock_grant_all(text[], text[], bigint[], bigint[], integer, bigint, text,
                                          bigint, text, text, boolean);
DROP FUNCTION IF EXISTS rowlock_look_all(text[], text[], bigint[], bigint[], integer, boolean,
                                         bigint);
DROP FUNCTION IF EXISTS rowlock_new_counter(text, bigint);
DROP FUNCTION IF EXISTS rowlock_grant_usual(text, text, bigint, bigint, text, bigint, text, text,
                                            bigint);
DROP FUNCTION IF EXISTS rowlock_grant(text, integer, text, bigint, bigint, text, bigint, text, text,
                                      bigint, bigint, boolean);
DROP FUNCTION IF EXISTS rowlock_look(text, integer, text, bigint, bigint, boolean, bigint);
DROP FUNCTION IF EXISTS rowlock_make_room(text, integer, text, bigint);
DROP FUNCTION IF EXISTS rowlock_guard(text, bigint, text, bigint);
DROP FUNCTION IF EXISTS rowlock_enqueue(text, integer, text, bigint, bigint, bigint, text, text,
                                        bigint, text, text, boolean);
DROP FUNCTION IF EXISTS rowlock_listen(text);
DROP FUNCTION IF EXISTS rowlock_leave(text, bigint, boolean);
DROP FUNCTION IF EXISTS rowlock_try(
    text, integer, text, bigint, bigint, text, bigint, text, text, bigint, boolean);
DROP FUNCTION IF EXISTS rowlock_wake_many(text[]);
DROP FUNCTION IF EXISTS rowlock_wake(text);
DROP FUNCTION IF EXISTS rowlock_relax();
DROP FUNCTION IF EXISTS rowlock_prove();
DROP FUNCTION IF EXISTS rowlock_raise(bigint);
DROP FUNCTION IF EXISTS rowlock_break(text, bigint);
DROP PROCEDURE IF EXISTS rowlock_housekeeping(integer, integer);
DROP TABLE IF EXISTS rowlock_locks, rowlock_waiters, rowlock_tokens, rowlock_fences, rowlock_once,
    rowlock_walks, rowlock_members, rowlock_meta;
