-- Keys as they stand, in the order of their bytes, a page at a time.
--
-- $1 the first key that may be listed  $2 after which key  $3 at most
-- rows: key, fingerprint, token, done, expires, changed, the time now
--
-- A plain read.

/* rowlock:once_list */
SELECT name, fingerprint, token, done, expires, changed, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
  FROM rowlock_once WHERE name >= $1::text AND name > $2::text ORDER BY name LIMIT $3::bigint
