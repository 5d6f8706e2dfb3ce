-- Forgets token counters that were idle for {idle}. Raises the floor to the highest token among
-- them. New names start above the floor, so no token is repeated.
--
-- {idle}  {limit} counters at most  {dry}: only counts them
-- columns of a dry run: how many counters. Else rows deleted.
--
-- Atomic: these three are one IMMEDIATE transaction, so all see the same counters. A row of the
-- first is the answer. The clock moves on between them, and a counter may become idle only for the
-- third. So the floor is raised to the highest counter of all, and no counter above it goes: if
-- none was idle for the second, the floor was not raised.

/* rowlock:fold */
SELECT n FROM (
    SELECT count(*) AS n FROM (
        SELECT 1 FROM rowlock_tokens t
         WHERE t.granted <= {clock} - {idle}
           AND NOT EXISTS (SELECT 1 FROM rowlock_locks l WHERE l.name = t.name)
         ORDER BY t.name LIMIT {limit}))
 WHERE {dry};

UPDATE rowlock_meta SET token_floor = max(token_floor,
                                          coalesce((SELECT max(token) FROM rowlock_tokens), 0))
 WHERE id = 1 AND EXISTS (
    SELECT 1 FROM rowlock_tokens t
     WHERE t.granted <= {clock} - {idle}
       AND NOT EXISTS (SELECT 1 FROM rowlock_locks l WHERE l.name = t.name));

DELETE FROM rowlock_tokens WHERE name IN (
    SELECT t.name FROM rowlock_tokens t
     WHERE t.granted <= {clock} - {idle}
       AND t.token <= (SELECT token_floor FROM rowlock_meta WHERE id = 1)
       AND NOT EXISTS (SELECT 1 FROM rowlock_locks l WHERE l.name = t.name)
     ORDER BY t.name LIMIT {limit})
