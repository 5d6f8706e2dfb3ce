-- Renews a lease that has not run out. Leaves all other cases to renew.
--
-- {name}  {slot}  {owner}  {token}  {ttl}
-- rows changed: 1 renewed. LAST_INSERT_ID: expires.
--
-- Atomic: one UPDATE of one row by its key. A procedure costs four times as much. The driver sends
-- this step by itself, and not on an adopted connection, whose LAST_INSERT_ID is the caller's.

/* rowlock:renew_usual */
UPDATE rowlock_locks
   SET expires = LAST_INSERT_ID({clock} + {ttl}), ttl = {ttl}, lapsed = 0, renewals = renewals + 1
 WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}
   AND expires > {clock}
