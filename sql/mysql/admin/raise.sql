-- Raises the floor and every token counter above all tokens granted before. It is for a failover
-- that may have lost the newest grants.
--
-- {by}
-- columns: the new floor
--
-- Atomic: the procedure does it in one transaction. It waits for the floor. It also waits for
-- grants in flight and guarded transactions, which have their token rows locked.

/* rowlock:raise */
CALL rowlock_raise({by})
