-- Keys as they stand, in the order of their bytes, a page at a time.
--
-- ?1 the first key that may be listed  ?2 after which key  ?3 at most
-- rows: key, fingerprint, token, done, expires, changed, the time now
--
-- A plain read.

/* rowlock:once_list */
SELECT name, fingerprint, token, done, expires, changed, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_once WHERE name >= ?1 AND name > ?2 ORDER BY name LIMIT ?3
