-- Make one of many leases last {ttl} from now on, if this owner and token still hold it.
--
-- {name}  {slot}  {owner}  {token}  {ttl}
-- columns: 1; now. No row: lost.
--
-- It runs from the next millisecond on, as in acquire.sql.
--
-- Atomic: one UPDATE of one row by its key. The driver runs it for each of the leases in one
-- IMMEDIATE transaction.

/* rowlock:renew_all */
UPDATE rowlock_locks
   SET lapsed = max(0, {clock} - expires),
       expires = {clock} + 1000 + {ttl},
       ttl = {ttl}, renewals = renewals + 1
 WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}
RETURNING 1, expires - ttl
