-- Those who stand in line, in the order of names and tickets, a page at a time.
--
-- ?1 name, or NULL for all  ?2 name, ?3 ticket and ?4 attempt after which the page begins  ?5 rows at most
-- columns: name, ticket, attempt, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, attempt, permits, owner, since, expires, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_waiters
 WHERE (?1 IS NULL OR name = ?1) AND (name, ticket, attempt) > (?2, ?3, ?4)
 ORDER BY name, ticket, attempt LIMIT ?5
