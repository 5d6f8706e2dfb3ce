-- Gives a grant the token of its quorum, and its holder.
--
-- {name}  {owner}  {request}  {token}: that the grant has here  {target}: that it gets
-- {holder}: the owner that it gets
-- rows changed: some, if the grant of this request was there, with that token
--
-- The counter of the name is {target} at least then, so each later grant has a higher token.
--
-- Atomic: one UPDATE of both tables. It reads the counter first, as all who grant do.

/* rowlock:lift */
UPDATE rowlock_tokens AS t STRAIGHT_JOIN rowlock_locks AS l ON l.name = t.name AND l.slot = 0
   SET t.token = GREATEST(t.token, {target}), l.token = {target}, l.owner = {holder}
 WHERE t.name = {name} AND l.owner = {owner} AND l.request = {request} AND l.token = {token}
