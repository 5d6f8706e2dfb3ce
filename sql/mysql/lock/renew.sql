-- Renews the lease: it lasts {ttl} from now on, if this owner and token hold the lock. Never
-- inserts.
--
-- {name}  {slot}  {owner}  {token}  {ttl}, 0: as long as before
-- columns: expires; lapsed: how long the lease had run out, 0: in time; now. No row: lost.
--
-- Mostly the driver sends renew_usual first, and that is enough.
--
-- Atomic: the procedure runs one UPDATE of one row by its key, and reads the row back.

/* rowlock:renew */
CALL rowlock_renew({name}, {slot}, {owner}, {token}, {ttl})
