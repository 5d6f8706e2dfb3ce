-- Let go of a wakeup (await.sql), and of the grant that it was kept for, if there is one.
--
-- {name}, or NULL: no grant  {slot}  {owner}  {token}  {wakeup}
-- columns: 1 released, 0 lost, or no grant was named
--
-- Atomic: one DELETE, as in release.sql, which is committed before the procedure lets go of the
-- wakeup: whoever wakes finds the lock free.

/* rowlock:wake */
CALL rowlock_wake({name}, {slot}, {owner}, {token}, {wakeup})
