-- Removes the grant of a request, unless it was renewed: then a holder counts on it.
--
-- {name}  {owner}  {request}
-- columns: 1 there was one, 0 there is none
--
-- Atomic: as withdraw.

/* rowlock:retract */
CALL rowlock_withdraw({name}, {owner}, {request}, FALSE)
