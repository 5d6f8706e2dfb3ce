-- Take a grant away and fence its holder out by bumping the name's token.
--
-- {name}  {token} that holds it
-- columns: the row that was removed. No row: this token does not hold it.
--
-- Atomic: these two are one IMMEDIATE transaction. Then the first in the queue is woken.

/* rowlock:break */
UPDATE rowlock_tokens SET token = token + 1
 WHERE name = {name}
   AND EXISTS (SELECT 1 FROM rowlock_locks WHERE name = {name} AND slot IN (0, {token})
               AND token = {token});

DELETE FROM rowlock_locks WHERE name = {name} AND slot IN (0, {token}) AND token = {token}
RETURNING name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program,
    note, {clock}
