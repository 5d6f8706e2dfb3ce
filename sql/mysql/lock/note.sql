-- Sets the note of a grant, if this owner and token hold the lock. The lease stays as it is.
--
-- {name}  {slot}  {owner}  {token}  {note}
-- rows changed: 1, or 0 if the grant is gone
--
-- Without CLIENT_FOUND_ROWS the same note as before changes no row. Core then asks with verify.
--
-- Atomic: one UPDATE of one row by its key.

/* rowlock:note */
UPDATE rowlock_locks SET note = {note}
 WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}
