-- Are the grants that kept many handles out the last time still there?
--
-- {pack} grants: a JSON array of [name, slot, token], names in hexadecimal
-- columns: the number of the grant, from 1, and the answer of still_held.sql. No row: it is gone or
-- has expired.

/* rowlock:still_held_many */
SELECT w.n, l.expires, l.ttl, l.renewals, {clock}
  FROM JSON_TABLE(CONVERT({pack} USING utf8mb4), '$[*]' COLUMNS (
           n FOR ORDINALITY, name VARBINARY(510) PATH '$[0]', slot BIGINT PATH '$[1]',
           token BIGINT PATH '$[2]')) w
  STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
     ON l.name = UNHEX(w.name) AND l.slot = w.slot AND l.token = w.token
 WHERE l.expires > {clock}
