-- Forget token counters unused for so long, and raise the floor that new names start above to the
-- highest token among them, so that no token is ever repeated.
--
-- {idle}  {limit} counters at most  {dry} run
-- columns: how many counters
--
-- Atomic: the procedure does it in one transaction, the floor's row locked first and
-- until the commit; whoever creates a counter share-locks it, so none starts below what is folded.

/* rowlock:fold */
CALL rowlock_fold({idle}, {limit}, {dry})
