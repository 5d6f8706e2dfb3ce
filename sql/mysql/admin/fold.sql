-- Forgets token counters that were idle for {idle}. Raises the floor to the highest token among
-- them. New names start above the floor, so no token is repeated.
--
-- {idle}  {limit} counters at most  {dry}: only counts them
-- columns: how many counters
--
-- Atomic: the procedure does it in one transaction. It locks the floor's row first, until the
-- commit. A statement that creates a counter share-locks that row, so no new counter starts below a
-- folded token.

/* rowlock:fold */
CALL rowlock_fold({idle}, {limit}, {dry})
