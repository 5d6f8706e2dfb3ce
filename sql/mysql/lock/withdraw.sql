-- Remove the grant that one request made, if it made one: its answer was lost.
--
-- {name}  {owner}  {request}
-- columns: 1 there was one, 0 there is none
--
-- Atomic: the procedure waits for a grant in flight, which may be this request's, by the name's
-- token row; then it looks for the row without locks, so that no other row of the name is waited
-- for, and runs one DELETE by its key.

/* rowlock:withdraw */
CALL rowlock_withdraw({name}, {owner}, {request})
