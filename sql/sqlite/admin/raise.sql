-- Raises the floor and every token counter above all tokens granted before. It is for a restored
-- backup that lacks the newest grants.
--
-- {by}
-- columns of the last statement: the new floor
--
-- Atomic: the driver runs these three in one IMMEDIATE transaction.

/* rowlock:raise */
UPDATE rowlock_meta
   SET token_floor = {by} + max(token_floor, coalesce((SELECT max(token) FROM rowlock_tokens), 0))
 WHERE id = 1;

UPDATE rowlock_tokens
   SET token = (SELECT token_floor FROM rowlock_meta WHERE id = 1),
       fenced = (SELECT token_floor FROM rowlock_meta WHERE id = 1);

SELECT token_floor FROM rowlock_meta WHERE id = 1
