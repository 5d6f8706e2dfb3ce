-- Take a grant away and fence its holder out by bumping the name's token.
--
-- ?1 name  ?2 token that holds it
-- columns of the first statement: the row that is removed. No row: this token does not hold it.
--
-- Atomic: the driver runs these three in one IMMEDIATE transaction, then rings for the first in line.

/* rowlock:break */
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_locks WHERE name = ?1 AND slot IN (0, ?2) AND token = ?2;

UPDATE rowlock_tokens SET token = token + 1
 WHERE name = ?1 AND EXISTS (SELECT 1 FROM rowlock_locks WHERE name = ?1 AND slot IN (0, ?2) AND token = ?2);

DELETE FROM rowlock_locks WHERE name = ?1 AND slot IN (0, ?2) AND token = ?2
