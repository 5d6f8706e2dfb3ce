-- Make the lease last ?5 from now on, if this owner and token still hold it. Never inserts.
--
-- ?1 name  ?2 slot  ?3 owner  ?4 token  ?5 ttl, or 0: as long as before
-- columns: expires, lapsed (how long the lease had run out; 0: in time), now. No row: lost.
--
-- It runs from the next millisecond on, as in acquire.sql.
--
-- Atomic: one UPDATE of one row by its key; 'now' is the same throughout a statement.

/* rowlock:renew */
UPDATE rowlock_locks
   SET lapsed = max(0, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 - expires),
       expires = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 + 1000 + CASE WHEN ?5 > 0 THEN ?5 ELSE ttl END,
       ttl = CASE WHEN ?5 > 0 THEN ?5 ELSE ttl END, renewals = renewals + 1
 WHERE name = ?1 AND slot = ?2 AND owner = ?3 AND token = ?4
RETURNING expires, lapsed, expires - ttl
