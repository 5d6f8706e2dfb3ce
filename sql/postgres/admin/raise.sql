-- Raises the floor and every token counter above all tokens granted before. It is for a failover
-- that may have lost the newest grants.
--
-- {by}
-- columns: the new floor
--
-- Atomic: one statement. It waits for:
-- - the floor, which a grant that creates a counter has share-locked
-- - grants in flight and guarded transactions, which have their token rows locked
-- The function reads the counters after that wait. A single statement would see only the counters
-- that were there before it.

/* rowlock:raise */
SELECT rowlock_raise({by}::bigint)
