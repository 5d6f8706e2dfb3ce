-- Turn our exclusive grant into one that lets others of its kind in.
--
-- {name}  {owner}  {token}  {permits}
-- columns: one row if it was ours. No row: lost.
--
-- Atomic: one statement. The token row is locked first, which may wait for a guard or a grant in
-- flight; then there is no other row of the name. The first in line is rung for.

/* rowlock:downgrade */
WITH counter AS MATERIALIZED (
    SELECT name FROM rowlock_tokens WHERE name = {name}::text FOR NO KEY UPDATE
), moved AS (
    UPDATE rowlock_locks l SET slot = l.token, permits = {permits}::integer FROM counter c
     WHERE l.name = c.name AND l.slot = 0 AND l.owner = {owner}::text AND l.token = {token}::bigint
    RETURNING l.name
), noted AS (
    UPDATE rowlock_tokens t SET permits = {permits}::integer FROM moved WHERE t.name = moved.name
)
SELECT rowlock_ring(name) IS NOT NULL FROM moved
