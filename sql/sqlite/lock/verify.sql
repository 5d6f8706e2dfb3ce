-- Does this owner and token hold the lock?
--
-- {name}  {slot}  {owner}  {token}
-- columns: expires, now. No row: lost.

/* rowlock:verify */
SELECT expires, {clock}
  FROM rowlock_locks WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}
