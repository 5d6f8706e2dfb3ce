-- Lists keys in the order of their bytes, a page at a time.
--
-- {first} the first key to list  {after} the page begins behind this key  {limit} rows at most
-- rows: key, fingerprint, token, done, expires, changed, now, the result if it is short
--
-- A plain read.

/* rowlock:once_list */
SELECT name, fingerprint, token, done, expires, changed, {clock},
       IF(LENGTH(result) <= 512, result, NULL)
  FROM rowlock_once WHERE name >= {first} AND name > {after} ORDER BY name LIMIT {limit}
