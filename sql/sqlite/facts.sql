-- What rowlock_check() wants to know. The rest the driver asks by PRAGMA.
--
-- columns: server, now

/* rowlock:facts */
SELECT 'SQLite ' || sqlite_version(), CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
