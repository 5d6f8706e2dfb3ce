-- Counts what is in the tables, for monitoring.
--
-- columns: now; held grants: exclusive, shared, counted; expired ones: the same; when the oldest
-- held grant was made; waiters, since when the first of them waits, expired tickets; token
-- counters; once keys: claimed, expired, done; token_floor, swept, version
--
-- A plain read in one snapshot. A row is held, waits or is claimed while its `expires` is ahead.

/* rowlock:measure */
SELECT c.now, l.exclusive, l.shared, l.counted, l.old_exclusive, l.old_shared, l.old_counted,
       l.oldest, w.waiters, w.since, w.expired, t.counters, o.claimed, o.expired, o.done,
       m.token_floor, greatest(m.swept, 0::bigint), m.version::bigint
  FROM rowlock_meta m
 CROSS JOIN (SELECT {clock} AS now OFFSET 0) c
 CROSS JOIN LATERAL (
        SELECT pg_catalog.count(*) FILTER (WHERE permits = 0 AND expires > c.now) AS exclusive,
               pg_catalog.count(*) FILTER (WHERE permits < 0 AND expires > c.now) AS shared,
               pg_catalog.count(*) FILTER (WHERE permits > 0 AND expires > c.now) AS counted,
               pg_catalog.count(*) FILTER (WHERE permits = 0 AND expires <= c.now) AS old_exclusive,
               pg_catalog.count(*) FILTER (WHERE permits < 0 AND expires <= c.now) AS old_shared,
               pg_catalog.count(*) FILTER (WHERE permits > 0 AND expires <= c.now) AS old_counted,
               pg_catalog.min(acquired) FILTER (WHERE expires > c.now) AS oldest
          FROM rowlock_locks) l
 CROSS JOIN LATERAL (
        SELECT pg_catalog.count(*) FILTER (WHERE expires > c.now) AS waiters,
               pg_catalog.min(since) FILTER (WHERE expires > c.now) AS since,
               pg_catalog.count(*) FILTER (WHERE expires <= c.now) AS expired
          FROM rowlock_waiters) w
 CROSS JOIN (SELECT pg_catalog.count(*) AS counters FROM rowlock_tokens) t
 CROSS JOIN LATERAL (
        SELECT pg_catalog.count(*) FILTER (WHERE NOT done AND expires > c.now) AS claimed,
               pg_catalog.count(*) FILTER (WHERE NOT done AND expires <= c.now) AS expired,
               pg_catalog.count(*) FILTER (WHERE done) AS done
          FROM rowlock_once) o
 WHERE m.id = 1
