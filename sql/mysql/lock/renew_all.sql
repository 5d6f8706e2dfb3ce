-- Make many leases last their ttl from now on, those of them that their owner and token still hold.
--
-- {pack} leases: a JSON array of [name, slot, owner, token, ttl], name and owner in hexadecimal
-- {count} how many they are
-- columns: which of them, counted from 1, or 0 for all; now. No row for those that are lost, or
-- that another transaction has locked.
--
-- Atomic: the procedure runs one UPDATE, and reads the rows
-- back only if some were left out. It waits for nobody, so
-- that one lease that somebody has locked, such as one that is being released in a transaction,
-- delays no other.

/* rowlock:renew_all */
CALL rowlock_renew_all({pack}, {count})
