-- Removes a grant, and moves the name's token on, which fences its holder out.
--
-- {name}  {token} of the grant
-- columns: the removed row. No row: there is no grant with this token.
--
-- Atomic: these two are one IMMEDIATE transaction. Then the driver wakes the first in the queue.

/* rowlock:break */
UPDATE rowlock_tokens SET token = token + 1
 WHERE name = {name}
   AND EXISTS (SELECT 1 FROM rowlock_locks WHERE name = {name} AND slot IN (0, {token})
               AND token = {token});

DELETE FROM rowlock_locks WHERE name = {name} AND slot IN (0, {token}) AND token = {token}
RETURNING name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
    note, {clock}
