-- Gives a grant the token of its quorum, and its holder.
--
-- {name}  {owner}  {request}  {token}: that the grant has here  {target}: that it gets
-- {holder}: the owner that it gets
-- columns: one row if the grant of this request was there, with that token
--
-- The counter of the name is {target} at least then, so each later grant has a higher token.
--
-- Atomic: these are one IMMEDIATE transaction.

/* rowlock:lift */
UPDATE rowlock_tokens SET token = max(token, {target})
 WHERE name = {name}
   AND EXISTS (SELECT 1 FROM rowlock_locks WHERE name = {name} AND slot = 0 AND owner = {owner}
                  AND request = {request} AND token = {token});

UPDATE rowlock_locks SET token = {target}, owner = {holder}
 WHERE name = {name} AND slot = 0 AND owner = {owner} AND request = {request} AND token = {token}
RETURNING 1
