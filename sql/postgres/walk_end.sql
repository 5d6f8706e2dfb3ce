-- The walk is over, or shall begin anew.
--
-- $1 name

/* rowlock:walk_end */
DELETE FROM rowlock_walks WHERE name = $1::text
