-- A procedure made again: {name} is its name, {rest} all that comes behind it in its file.
--
-- MariaDB replaces it in one statement, and keeps the privileges on it. MySQL drops it first. A
-- call in between finds none, and the library sends it again. The privileges are gone: grants.sql.
-- MySQL also waits for each transaction that has called it: briefly, since calls queue behind that.
-- Comments that begin with ! are read by MySQL alone, those with M! by MariaDB alone. The first
-- CREATE is for MySQL: it changes nothing there, and fails before anything is dropped if this user
-- may not create.

/* rowlock:remake */
SET lock_wait_timeout = 1;
CREATE /*M! OR REPLACE */ PROCEDURE /*!80000 IF NOT EXISTS */ {name}{rest}
/*!80000 DROP PROCEDURE IF EXISTS {name} */ /*M! DO 0 */;
CREATE /*M! OR REPLACE */ PROCEDURE /*!80000 IF NOT EXISTS */ {name}{rest}
SET lock_wait_timeout = DEFAULT;
