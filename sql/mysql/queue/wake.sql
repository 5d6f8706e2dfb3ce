-- Releases a wake-up (await.sql), and before it the grant that belongs to it, if there is one.
--
-- {name}, or NULL: no grant  {slot}  {owner}  {token}  {wakeup}
-- columns: 1 released, 0 lost or no grant was named
--
-- Atomic: one DELETE, as in release.sql. It commits before the procedure releases the wake-up. So a
-- woken waiter finds the lock free.

/* rowlock:wake */
CALL rowlock_wake({name}, {slot}, {owner}, {token}, {wakeup})
