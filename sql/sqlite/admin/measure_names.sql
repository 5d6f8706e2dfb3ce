-- Counts what is in the tables for each name that has a token counter, a page at a time.
--
-- {glob}: * stands for any text, ? for any character  {limit} names at most
-- {after} name: the page begins behind it
-- columns: name; its highest token; held grants, when the first was made, when the first ends, the
-- longest time that a lease had run out when it was renewed; waiters, since when the first waits;
-- now
--
-- A plain read. GLOB of SQLite also knows [sets], which are not ours.

/* rowlock:measure_names */
SELECT t.name, t.token, count(l.slot), min(l.acquired), min(l.expires), coalesce(max(l.lapsed), 0),
       (SELECT count(*) FROM rowlock_waiters w WHERE w.name = t.name AND w.expires > {clock}),
       (SELECT min(w.since) FROM rowlock_waiters w WHERE w.name = t.name AND w.expires > {clock}),
       {clock}
  FROM (SELECT name, token
          FROM rowlock_tokens
         WHERE name > {after} AND name GLOB replace({glob}, '[', '[[]')
         ORDER BY name LIMIT {limit}) t
  LEFT JOIN rowlock_locks l ON l.name = t.name AND l.expires > {clock}
 GROUP BY t.name, t.token
 ORDER BY t.name
