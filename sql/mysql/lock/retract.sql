-- Removes the grant of a request, unless it was renewed: then a holder counts on it.
--
-- {name}  {owner}  {request}
-- rows changed by the last statement: 1 if there was one. The driver then wakes the first in the
-- queue.
--
-- Atomic: one transaction. The first statement changes nothing, but waits for a grant in flight:
-- each has the token row locked.

/* rowlock:retract */
UPDATE rowlock_tokens SET token = token WHERE name = {name};

DELETE FROM rowlock_locks
 WHERE name = {name} AND slot = 0 AND owner = {owner} AND request = {request} AND renewals = 0
