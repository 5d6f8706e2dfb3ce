-- Renews the lease: it lasts {ttl} from now on, if this owner and token hold the lock. Never
-- inserts.
--
-- {name}  {slot}  {owner}  {token}  {ttl}, 0: as long as before
-- columns: expires; lapsed: how long the lease had run out, 0: in time; now. No row: lost.
--
-- The lease begins at the next millisecond, as in acquire.sql.
--
-- Atomic: one UPDATE of one row by its key. 'now' is the same throughout a statement.

/* rowlock:renew */
UPDATE rowlock_locks
   SET lapsed = max(0, {clock} - expires),
       expires = {clock} + 1000 + CASE WHEN {ttl} > 0 THEN {ttl} ELSE ttl END,
       ttl = CASE WHEN {ttl} > 0 THEN {ttl} ELSE ttl END, renewals = renewals + 1
 WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}
RETURNING expires, lapsed, expires - ttl
