-- What rowlock_check() wants to know.
--
-- columns: server, now, journal_mode, synchronous (0 off, 1 normal, 2 full, 3 extra), query_only

/* rowlock:facts */
SELECT 'SQLite ' || sqlite_version(), {clock}, (SELECT journal_mode FROM pragma_journal_mode),
       (SELECT synchronous FROM pragma_synchronous), (SELECT query_only FROM pragma_query_only)
