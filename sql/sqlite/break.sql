-- Take a grant away and fence its holder out by bumping the name's token.
--
-- ?1 name  ?2 slot  ?3 token that must hold it, 0: whichever does
-- columns of the first statement: the row that is removed. No row: nobody, or another token, holds it.
--
-- Atomic: the driver runs these three in one IMMEDIATE transaction.

/* rowlock:break */
SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND (?3 = 0 OR token = ?3);

UPDATE rowlock_tokens SET token = token + 1
 WHERE name = ?1
   AND EXISTS (SELECT 1 FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND (?3 = 0 OR token = ?3));

DELETE FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND (?3 = 0 OR token = ?3)
