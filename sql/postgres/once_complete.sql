-- Say that what a key stands for was done, with a result for those who ask again.
--
-- $1 result  $2 key  $3 attempt
-- rows changed: 1, or 0: it has been claimed again since
--
-- One UPDATE by key and attempt, in the transaction in which it was done.

/* rowlock:once_complete */
UPDATE rowlock_once SET done = true, result = $1::bytea, changed = (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint
 WHERE name = $2::text AND attempt = $3::bigint
