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
       m.token_floor, max(m.swept, 0), m.version
  FROM rowlock_meta m
 CROSS JOIN (
        SELECT count(*) FILTER (WHERE permits = 0 AND expires > {clock}) AS exclusives,
               count(*) FILTER (WHERE permits < 0 AND expires > {clock}) AS shared,
               count(*) FILTER (WHERE permits > 0 AND expires > {clock}) AS counted,
               count(*) FILTER (WHERE permits = 0 AND expires <= {clock}) AS old_exclusives,
               count(*) FILTER (WHERE permits < 0 AND expires <= {clock}) AS old_shared,
               count(*) FILTER (WHERE permits > 0 AND expires <= {clock}) AS old_counted,
               min(acquired) FILTER (WHERE expires > {clock}) AS oldest
          FROM rowlock_locks) l
 CROSS JOIN (
        SELECT count(*) FILTER (WHERE expires > {clock}) AS waiters,
               min(since) FILTER (WHERE expires > {clock}) AS since,
               count(*) FILTER (WHERE expires <= {clock}) AS old_waiters
          FROM rowlock_waiters) w
 CROSS JOIN (SELECT count(*) AS counters FROM rowlock_tokens) t
 CROSS JOIN (
        SELECT count(*) FILTER (WHERE done = 0 AND expires > {clock}) AS claimed,
               count(*) FILTER (WHERE done = 0 AND expires <= {clock}) AS old_claims,
               count(*) FILTER (WHERE done <> 0) AS finished
          FROM rowlock_once) o
 WHERE m.id = 1
