-- Raise the floor and every token counter above whatever was granted before: after a failover that
-- may have lost the newest grants.
--
-- {by}
-- columns: the new floor
--
-- Atomic: one statement. It waits for the floor, which those share-lock that give a new name its
-- counter, and for grants in flight and guarded transactions, each of which holds its token row.
-- The function looks for counters after that wait: a single statement would see those that were
-- there before it.

/* rowlock:raise */
SELECT rowlock_raise({by}::bigint)
