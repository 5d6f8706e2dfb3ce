-- Forget token counters unused for ?1, and raise the floor that new names start above to the highest
-- token among them, so that no token is ever repeated.
--
-- ?1 idle  ?2 counters at most  ?3 dry run
-- columns of the first statement: how many counters
--
-- Atomic: the driver runs these three in one IMMEDIATE transaction, so all see the same counters. The
-- clock moves on between them, so the floor is raised to the highest counter of all: one that becomes
-- idle only for the third statement is covered too.

/* rowlock:fold */
SELECT count(*) FROM (
    SELECT 1 FROM rowlock_tokens t
     WHERE t.granted <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 - ?1
       AND NOT EXISTS (SELECT 1 FROM rowlock_locks l WHERE l.name = t.name)
     ORDER BY t.name LIMIT ?2);

UPDATE rowlock_meta SET token_floor = max(token_floor, coalesce((
    SELECT max(token) FROM rowlock_tokens), 0))
 WHERE id = 1 AND NOT ?3;

DELETE FROM rowlock_tokens WHERE NOT ?3 AND name IN (
    SELECT t.name FROM rowlock_tokens t
     WHERE t.granted <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 - ?1
       AND NOT EXISTS (SELECT 1 FROM rowlock_locks l WHERE l.name = t.name)
     ORDER BY t.name LIMIT ?2)
