-- A function made again: {name} is its name, {rest} all that comes behind it in its file.
--
-- The lock lets one session make functions at a time: two that replace one function at the same
-- moment would fail. Acquire, renew and release do not wait for it. It is waited for briefly: a
-- caller's transaction that sweeps may hold it up.

/* rowlock:remake */
BEGIN;
SET LOCAL lock_timeout = '200ms';
LOCK TABLE rowlock_meta IN SHARE ROW EXCLUSIVE MODE;
CREATE OR REPLACE FUNCTION {name}{rest}
COMMIT;
