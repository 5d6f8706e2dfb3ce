-- Asks for the version of our tables, and whether each table has all of its columns.
--
-- columns: version, compat, code, identity, token_floor, swept; which member of a quorum this
-- database is, 0 if none
-- - No row: an installation was cut short.
-- - An error about a table or a column: it is missing, or the table is another program's.
--
-- It names only the columns of level 1, so every library can read the tables of every version. The
-- subqueries find nothing. They only make the server look up the columns that they name.

/* rowlock:meta */
SELECT version, compat, code, identity, token_floor, swept,
       COALESCE((SELECT m.member FROM rowlock_members m WHERE m.self), 0)
  FROM rowlock_meta
 WHERE id = 1
   AND NOT EXISTS (
            SELECT name, slot, permits, owner, token, request, acquired, expires, ttl, lapsed,
                   renewals, host, pid, program, note
              FROM rowlock_locks WHERE 1 = 0)
   AND NOT EXISTS (SELECT name, token, granted, permits, fenced FROM rowlock_tokens WHERE 1 = 0)
   AND NOT EXISTS (
            SELECT name, ticket, request, permits, owner, since, expires, wakeup, host, pid,
                   program, note
              FROM rowlock_waiters WHERE 1 = 0)
