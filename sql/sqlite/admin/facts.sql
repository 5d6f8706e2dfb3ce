-- What rowlock_check() wants to know. The rest the driver asks by PRAGMA.
--
-- columns: server, now

/* rowlock:facts */
SELECT 'SQLite ' || sqlite_version(), {clock}
