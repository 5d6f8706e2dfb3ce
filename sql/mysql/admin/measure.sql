-- Counts what is in the tables, for monitoring.
--
-- columns: now; held grants: exclusive, shared, counted; expired ones: the same; when the oldest
-- held grant was made; waiters, since when the first of them waits, expired tickets; token
-- counters; once keys: claimed, expired, done; token_floor, swept, version
--
-- A plain read in one snapshot. A row is held, waits or is claimed while its `expires` is ahead.
-- The clock stands still during a statement.

/* rowlock:measure */
SELECT {clock}, l.exclusives, l.shared, l.counted, l.old_exclusives, l.old_shared, l.old_counted,
       l.oldest, w.waiters, w.since, w.old_waiters, t.counters, o.claimed, o.old_claims, o.finished,
       m.token_floor, GREATEST(m.swept, 0), m.version
  FROM rowlock_meta m
 CROSS JOIN (
        SELECT COUNT(CASE WHEN permits = 0 AND expires > {clock} THEN 1 END) AS exclusives,
               COUNT(CASE WHEN permits < 0 AND expires > {clock} THEN 1 END) AS shared,
               COUNT(CASE WHEN permits > 0 AND expires > {clock} THEN 1 END) AS counted,
               COUNT(CASE WHEN permits = 0 AND expires <= {clock} THEN 1 END) AS old_exclusives,
               COUNT(CASE WHEN permits < 0 AND expires <= {clock} THEN 1 END) AS old_shared,
               COUNT(CASE WHEN permits > 0 AND expires <= {clock} THEN 1 END) AS old_counted,
               MIN(CASE WHEN expires > {clock} THEN acquired END) AS oldest
          FROM rowlock_locks) l
 CROSS JOIN (
        SELECT COUNT(CASE WHEN expires > {clock} THEN 1 END) AS waiters,
               MIN(CASE WHEN expires > {clock} THEN since END) AS since,
               COUNT(CASE WHEN expires <= {clock} THEN 1 END) AS old_waiters
          FROM rowlock_waiters) w
 CROSS JOIN (SELECT COUNT(*) AS counters FROM rowlock_tokens) t
 CROSS JOIN (
        SELECT COUNT(CASE WHEN done = 0 AND expires > {clock} THEN 1 END) AS claimed,
               COUNT(CASE WHEN done = 0 AND expires <= {clock} THEN 1 END) AS old_claims,
               COUNT(CASE WHEN done <> 0 THEN 1 END) AS finished
          FROM rowlock_once) o
 WHERE m.id = 1
