-- Gives a grant the token of its quorum, and its holder.
--
-- {name}  {owner}  {request}  {token}: that the grant has here  {target}: that it gets
-- {holder}: the owner that it gets
-- columns: one row if the grant of this request was there, with that token
--
-- The counter of the name is {target} at least then, so each later grant has a higher token.
--
-- Atomic: one statement. It locks the counter first, as all who grant do.

/* rowlock:lift */
WITH counter AS MATERIALIZED (
    SELECT t.name FROM rowlock_tokens t WHERE t.name = {name}::text FOR UPDATE
), lifted AS (
    UPDATE rowlock_locks l SET token = {target}::bigint, owner = {holder}::text
      FROM counter c
     WHERE l.name = c.name AND l.slot = 0 AND l.owner = {owner}::text
       AND l.request = {request}::bigint AND l.token = {token}::bigint
    RETURNING l.name
)
UPDATE rowlock_tokens t SET token = greatest(t.token, {target}::bigint) FROM lifted
 WHERE t.name = lifted.name
RETURNING true
