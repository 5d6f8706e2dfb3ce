-- Makes a procedure again. {name} is its name, {rest} all that comes behind the name in its file.
--
-- - MariaDB replaces it in one statement, and keeps its privileges.
-- - MySQL drops it first. A call in between finds no procedure, and the library sends it again. The
--   privileges are gone: grant them again.
-- - MySQL also waits for each transaction that has called it. The wait is short, since calls queue
--   behind it.
--
-- Only MySQL reads comments that begin with !. Only MariaDB reads those that begin with M!. The
-- first CREATE is for MySQL. It changes nothing there, and fails before anything is dropped if this
-- user may not create procedures.

/* rowlock:remake */
SET lock_wait_timeout = 1;
CREATE /*M! OR REPLACE */ PROCEDURE /*!80000 IF NOT EXISTS */ {name}{rest}
/*!80000 DROP PROCEDURE IF EXISTS {name} */ /*M! DO 0 */;
CREATE /*M! OR REPLACE */ PROCEDURE /*!80000 IF NOT EXISTS */ {name}{rest}
SET lock_wait_timeout = DEFAULT;
