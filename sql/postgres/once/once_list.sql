-- Lists keys in the order of their bytes, a page at a time.
--
-- {first} the first key to list  {after} the page begins behind this key  {limit} rows at most
-- rows: key, fingerprint, token, done, expires, changed, now, the result if it is short
--
-- A plain read.

/* rowlock:once_list */
SELECT name, fingerprint, token, done, expires, changed, {clock},
       CASE WHEN pg_catalog.octet_length(result) <= 512 THEN result END
  FROM rowlock_once WHERE name >= {first}::text AND name > {after}::text ORDER BY name
      LIMIT {limit}::bigint
