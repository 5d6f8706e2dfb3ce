-- Turn our exclusive grant into one that lets others of its kind in.
--
-- {name}  {owner}  {token}  {permits}
-- rows changed by the last statement: 1 done, 0 lost
--
-- Atomic: the driver runs these two in one IMMEDIATE transaction, then rings for the first in line.

/* rowlock:downgrade */
UPDATE rowlock_tokens SET permits = {permits}
 WHERE name = {name}
   AND EXISTS (SELECT 1 FROM rowlock_locks WHERE name = {name} AND slot = 0 AND owner = {owner}
               AND token = {token});

UPDATE rowlock_locks SET slot = token, permits = {permits}
 WHERE name = {name} AND slot = 0 AND owner = {owner} AND token = {token}
