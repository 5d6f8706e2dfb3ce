-- Renews one of many leases: it lasts {ttl} from now on, if this owner and token hold the lock.
--
-- {name}  {slot}  {owner}  {token}  {ttl}
-- columns: 1; now. No row: lost.
--
-- The lease begins at the next millisecond, as in acquire.sql.
--
-- Atomic: one UPDATE of one row by its key. The driver runs it for each lease, in one IMMEDIATE
-- transaction.

/* rowlock:renew_all */
UPDATE rowlock_locks
   SET lapsed = max(0, {clock} - expires),
       expires = {clock} + 1000 + {ttl},
       ttl = {ttl}, renewals = renewals + 1
 WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}
RETURNING 1, expires - ttl
