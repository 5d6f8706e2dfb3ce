-- Renews the leases of many handles, each for itself.
--
-- {pack} leases in the order of names: a JSON array of [name, slot, owner, token, ttl], name and
-- owner in hexadecimal; ttl 0: as long as before
-- columns: the number of the lease, from 1, and the answer of renew.sql: expires, lapsed, now. A
-- negative number: another transaction has the row locked. No row: lost.
--
-- Atomic: the procedure runs one UPDATE with SKIP LOCKED, and reads the rows back in the same
-- transaction.

/* rowlock:renew_many */
CALL rowlock_renew_many({pack})
