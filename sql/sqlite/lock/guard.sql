-- Guards the caller's transaction: this lock is granted to no one else before the transaction ends.
--
-- {name}  {slot}  {owner}  {token}
-- columns: the newest token of the name; whether the grant is there. No row: lost.
--
-- Runs inside the caller's transaction, also by hand. The UPDATE changes nothing, but it makes the
-- transaction the only writer of the file, even if it finds no row. So no grant, renewal or release
-- of another client commits before the transaction ends. An exclusive grant is there while its
-- token is the newest. Other grants of a shared or counted lock also move the token on, but a
-- conflicting grant removes the row.

/* rowlock:guard */
UPDATE rowlock_tokens SET token = token WHERE name = {name}
RETURNING token, token = {token} OR ({slot} <> 0 AND {token} > fenced AND EXISTS (
    SELECT 1 FROM rowlock_locks l WHERE l.name = {name} AND l.slot = {slot} AND l.owner = {owner}
           AND l.token = {token}))
