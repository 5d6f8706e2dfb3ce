-- Counts what is in the tables for each name that has a token counter, a page at a time.
--
-- {glob}: * stands for any text, ? for any character  {limit} names at most
-- {after} name: the page begins behind it
-- columns: name; its highest token; held grants, when the first was made, when the first ends, the
-- longest time that a lease had run out when it was renewed; waiters, since when the first waits;
-- now
--
-- A plain read.

/* rowlock:measure_names */
SELECT t.name, t.token, l.holders, l.acquired, l.expires, l.lapsed, w.waiters, w.since, c.now
  FROM (SELECT {clock} AS now OFFSET 0) c
 CROSS JOIN (
        SELECT name, token
          FROM rowlock_tokens
         WHERE name > {after}::text
           AND name LIKE pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(
                   pg_catalog.replace(pg_catalog.replace({glob}::text,
                       '!', '!!'), '%', '!%'), '_', '!_'), '*', '%'), '?', '_') ESCAPE '!'
         ORDER BY name LIMIT {limit}::bigint) t
 CROSS JOIN LATERAL (
        SELECT pg_catalog.count(*) AS holders, pg_catalog.min(acquired) AS acquired,
               pg_catalog.min(expires) AS expires, coalesce(pg_catalog.max(lapsed), 0) AS lapsed
          FROM rowlock_locks WHERE name = t.name AND expires > c.now) l
 CROSS JOIN LATERAL (
        SELECT pg_catalog.count(*) AS waiters, pg_catalog.min(since) AS since
          FROM rowlock_waiters WHERE name = t.name AND expires > c.now) w
 ORDER BY t.name
