-- Lists keys in the order of their bytes, a page at a time.
--
-- {first} the first key to list  {after} the page begins behind this key  {limit} rows at most
-- rows: key, fingerprint, token, done, expires, changed, now
--
-- A plain read.

/* rowlock:once_list */
SELECT name, fingerprint, token, done, expires, changed, {clock}
  FROM rowlock_once WHERE name >= {first} AND name > {after} ORDER BY name LIMIT {limit}
