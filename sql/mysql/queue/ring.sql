-- Let go of a bell (await.sql), and of the grant that it was kept for, if there is one.
--
-- {name}, or NULL: no grant  {slot}  {owner}  {token}  {bell}
-- columns: 1 released, 0 lost, or no grant was named
--
-- Atomic: one DELETE, as in release.sql, which is committed before the procedure lets go of the
-- bell: whoever wakes finds the lock free.

/* rowlock:ring */
CALL rowlock_ring({name}, {slot}, {owner}, {token}, {bell})
