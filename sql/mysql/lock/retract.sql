-- Removes the grant of a request, unless it was renewed: then a holder counts on it.
--
-- {name}  {owner}  {request}
-- {token} of the grant, or a higher one that was granted before. So a copy that comes late does not
-- remove what the same request was granted since.
-- columns: 1 there was one, 0 there is none
--
-- Atomic: as withdraw.

/* rowlock:retract */
CALL rowlock_withdraw({name}, {owner}, {request}, {token})
