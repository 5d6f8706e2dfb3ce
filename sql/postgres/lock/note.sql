-- Sets the note of a grant, if this owner and token hold the lock. The lease stays as it is.
--
-- {name}  {slot}  {owner}  {token}  {note}
-- rows changed: 1, or 0 if the grant is gone
--
-- Atomic: one UPDATE of one row by its key.

/* rowlock:note */
UPDATE rowlock_locks SET note = {note}::text
 WHERE name = {name}::text AND slot = {slot}::bigint AND owner = {owner}::text
       AND token = {token}::bigint
