-- Make the lease last ttl from now on, if this owner and token still hold it. Never inserts.
--
-- {name}  {slot}  {owner}  {token}  {ttl}, or 0: as long as before
-- columns: expires, lapsed (how long the lease had run out; 0: in time), now. No row: lost.
--
-- Atomic: the procedure runs one UPDATE of one row by its key, and reads it back.

/* rowlock:renew */
CALL rowlock_renew({name}, {slot}, {owner}, {token}, {ttl})
