-- Turn our exclusive grant into one that lets others of its kind in.
--
-- {name}  {owner}  {token}  {permits}
-- columns: 1 done, 0 lost
--
-- Atomic: the procedure does it in one transaction under the name's token row, for which it may
-- wait; then there is no other row of the name.

/* rowlock:downgrade */
CALL rowlock_downgrade({name}, {owner}, {token}, {permits})
