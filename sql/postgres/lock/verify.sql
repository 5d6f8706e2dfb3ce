-- Does this owner and token hold the lock?
--
-- {name}  {slot}  {owner}  {token}
-- columns: expires, now. No row: lost.

/* rowlock:verify */
SELECT expires, {clock}
  FROM rowlock_locks
 WHERE name = {name}::text AND slot = {slot}::bigint AND owner = {owner}::text
       AND token = {token}::bigint
