-- Keys as they stand, in the order of their bytes, a page at a time.
--
-- ? the first key that may be listed  ? after which key  ? at most
-- rows: key, fingerprint, token, done, expires, changed, the time now
--
-- A plain read.

/* rowlock:once_list */
SELECT name, fingerprint, token, done, expires, changed, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
  FROM rowlock_once WHERE name >= ? AND name > ? ORDER BY name LIMIT ?
