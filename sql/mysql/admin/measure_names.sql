-- Counts what is in the tables for each name that has a token counter, a page at a time.
--
-- {glob}: * stands for any text, ? for any character  {limit} names at most
-- {after} name: the page begins behind it
-- columns: name; its highest token; held grants, when the first was made, when the first ends, the
-- longest time that a lease had run out when it was renewed; waiters, since when the first waits;
-- now
--
-- A plain read. The clock stands still during a statement. Names are bytes, and are characters
-- only where the pattern is compared.

/* rowlock:measure_names */
SELECT t.name, t.token, COUNT(l.slot), MIN(l.acquired), MIN(l.expires), COALESCE(MAX(l.lapsed), 0),
       (SELECT COUNT(*) FROM rowlock_waiters w WHERE w.name = t.name AND w.expires > {clock}),
       (SELECT MIN(w.since) FROM rowlock_waiters w WHERE w.name = t.name AND w.expires > {clock}),
       {clock}
  FROM (SELECT name, token
          FROM rowlock_tokens
         WHERE name > {after}
           AND CONVERT(name USING utf8mb4) COLLATE utf8mb4_bin LIKE REPLACE(REPLACE(REPLACE(
                   REPLACE(REPLACE(CONVERT(CAST({glob} AS BINARY) USING utf8mb4),
                       '!', '!!'), '%', '!%'), '_', '!_'), '*', '%'), '?', '_') ESCAPE '!'
         ORDER BY name LIMIT {limit}) t
  LEFT JOIN rowlock_locks l ON l.name = t.name AND l.expires > {clock}
 GROUP BY t.name, t.token
 ORDER BY t.name
