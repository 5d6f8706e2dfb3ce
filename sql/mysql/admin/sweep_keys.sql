-- Removes rows that expired.sql has found, if they are the same grants and still expired.
--
-- {pack} rows: a JSON array of [slot, token, name], the name in hexadecimal  {older}
-- rows deleted: fewer, if some were renewed, released or taken over meanwhile, or are locked
--
-- Atomic: one statement, which finds each row by its key. The condition is checked on the row that
-- is locked. DELETE has no SKIP LOCKED, but the SELECT before it has. So a row that another
-- transaction has locked is skipped. DELETE with a range would be faster, but it would lock every
-- row that it passes, and wait for those that others have locked.
--
-- JSON_TABLE has a derived table of its own: MySQL refuses it beside a locking clause (error 3569).

/* rowlock:sweep_keys */
DELETE l FROM (
    SELECT l.name, l.slot
      FROM (SELECT UNHEX(j.name) AS name, j.slot, j.token
              FROM JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]' COLUMNS (
                       slot BIGINT PATH '$[0]', token BIGINT PATH '$[1]',
                       name VARBINARY(510) PATH '$[2]')) j) w
      STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
         ON l.name = w.name AND l.slot = w.slot AND l.token = w.token
        AND l.expires <= {clock} - {older}
     LIMIT 1000000 FOR UPDATE SKIP LOCKED) mine
  STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY) ON l.name = mine.name AND l.slot = mine.slot
