-- Raise the floor and every token counter above whatever was granted before: after a failover that
-- may have lost the newest grants.
--
-- {by}
-- columns: the new floor
--
-- Atomic: the procedure does it in one transaction. It waits for the floor and for grants
-- in flight and guarded transactions, each of which holds its token row.

/* rowlock:raise */
CALL rowlock_raise({by})
