-- Removes the grant of a request whose answer was lost, if there is one.
--
-- {name}  {owner}  {request}
-- columns: 1 there was one, 0 there is none
--
-- Atomic: the procedure waits for the name's token row, since the request itself may be in flight.
-- Then it looks for the lock row without locks, so it waits for no other row of the name. Then it
-- runs one DELETE by the key.

/* rowlock:withdraw */
CALL rowlock_withdraw({name}, {owner}, {request}, NULL)
