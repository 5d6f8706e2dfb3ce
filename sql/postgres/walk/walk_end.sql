-- Removes the checkpoint: the walk is done, or begins again.
--
-- {name}

/* rowlock:walk_end */
DELETE FROM rowlock_walks WHERE name = {name}::text
