-- Makes a function or procedure again. {kind} says which, {name} is its name, {rest} all that comes
-- behind the name in its file.
--
-- The lock lets one session make functions at a time: if two replace a function at the same moment,
-- one fails. Acquire, renew and release do not wait for this lock. The wait for it is short,
-- because a caller's transaction with a sweep may hold it up.

/* rowlock:remake */
BEGIN;
SET LOCAL lock_timeout = '200ms';
LOCK TABLE rowlock_meta IN SHARE ROW EXCLUSIVE MODE;
CREATE OR REPLACE {kind} {name}{rest}
COMMIT;
