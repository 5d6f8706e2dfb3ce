-- Does this owner and token hold the lock?
--
-- {name}  {slot}  {owner}  {token}
-- columns: expires, now. No row: lost.
--
-- A server whose standby was promoted may still answer, and lacks grants of the new primary. So no
-- row is only answered with a commit: there it waits for the standby, and ends with an error.

/* rowlock:verify */
WITH found AS MATERIALIZED (
    SELECT expires FROM rowlock_locks
     WHERE name = {name}::text AND slot = {slot}::bigint AND owner = {owner}::text
           AND token = {token}::bigint
)
SELECT expires, {clock} FROM found
UNION ALL
SELECT 0, 0
 WHERE CASE WHEN EXISTS (SELECT FROM found) THEN false
            ELSE NOT rowlock_prove() END
