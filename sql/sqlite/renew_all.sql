-- Make one of many leases last ?5 from now on, if this owner and token still hold it.
--
-- ?1 name  ?2 slot  ?3 owner  ?4 token  ?5 ttl
-- columns: now. No row: lost.
--
-- It runs from the next millisecond on, as in acquire.sql.
--
-- Atomic: one UPDATE of one row by its key. The driver runs it for each of the leases in one IMMEDIATE
-- transaction.

/* rowlock:renew_all */
UPDATE rowlock_locks
   SET lapsed = max(0, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 - expires),
       expires = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 + 1000 + ?5,
       ttl = ?5, renewals = renewals + 1
 WHERE name = ?1 AND slot = ?2 AND owner = ?3 AND token = ?4
RETURNING expires - ttl
