-- Renews many leases: each lasts its ttl from now on, if its owner and token hold the lock.
--
-- {pack} leases: a JSON array of [slot, token, ttl, name, owner], name and owner in hexadecimal
-- {count} how many
-- columns: the number of the lease, from 1, or 0 for all; now. No row for a lease that is lost, or
-- whose row another transaction has locked.
--
-- On MariaDB the driver sends renew_all_usual first.
--
-- Atomic: the procedure runs one UPDATE. It reads the rows back only if some were left out. It
-- waits for no lock, so a locked row delays no other lease: a transaction may be releasing it, for
-- example.

/* rowlock:renew_all */
CALL rowlock_renew_all({pack}, {count})
