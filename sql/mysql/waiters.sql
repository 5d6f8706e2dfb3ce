-- Those who stand in line, in the order of names and tickets, a page at a time.
--
-- ? name, or NULL for all  ? the same again  ? name after which the page begins  ? the same again
-- ? ticket after which it begins  ? the same again  ? attempt after which it begins  ? rows at most
-- columns: name, ticket, attempt, permits, owner, since, expires, host, pid, program, note, now

/* rowlock:waiters */
SELECT name, ticket, attempt, permits, owner, since, expires, host, pid, program, note,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM rowlock_waiters
 WHERE (? IS NULL OR name = ?) AND name >= ?
   AND (name > ? OR ticket > ? OR (ticket = ? AND attempt > ?))
 ORDER BY name, ticket, attempt LIMIT ?
