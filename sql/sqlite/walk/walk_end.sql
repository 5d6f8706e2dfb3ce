-- The walk is over, or shall begin anew.
--
-- {name}

/* rowlock:walk_end */
DELETE FROM rowlock_walks WHERE name = {name}
