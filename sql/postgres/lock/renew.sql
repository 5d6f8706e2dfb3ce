-- Renews the lease: it lasts {ttl} from now on, if this owner and token hold the lock. Never
-- inserts.
--
-- {name}  {slot}  {owner}  {token}  {ttl}, 0: as long as before
-- columns: expires; lapsed: how long the lease had run out, 0: in time; now. No row: lost.
--
-- Atomic: one UPDATE of one row by its key. After a wait for the row its WHERE and its clock are
-- evaluated again. The UPDATE always changes the row, so no driver mistakes "unchanged" for "not
-- found".

/* rowlock:renew */
UPDATE rowlock_locks
   SET lapsed = greatest(0, {clock} - expires),
       expires = {clock}
                 + CASE WHEN {ttl}::bigint > 0 THEN {ttl}::bigint ELSE ttl END,
       ttl = CASE WHEN {ttl}::bigint > 0 THEN {ttl}::bigint ELSE ttl END, renewals = renewals + 1
 WHERE name = {name}::text AND slot = {slot}::bigint AND owner = {owner}::text
       AND token = {token}::bigint
RETURNING expires, lapsed, expires - ttl
