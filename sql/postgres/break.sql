-- Take a grant away and fence its holder out by bumping the name's token.
--
-- $1 name  $2 token that holds it
-- columns: the row that was removed. No row: this token does not hold it. The first in line is
-- rung for.
--
-- Atomic: one statement. It waits for the token row, that is for a grant in flight or a guarded
-- transaction; then the row is looked at again.

/* rowlock:break */
WITH counter AS MATERIALIZED (
    SELECT name FROM rowlock_tokens WHERE name = $1::text FOR NO KEY UPDATE
), gone AS (
    DELETE FROM rowlock_locks l USING counter c
     WHERE l.name = c.name AND l.slot IN (0, $2::bigint) AND l.token = $2::bigint
    RETURNING l.*
), bumped AS (
    UPDATE rowlock_tokens t SET token = t.token + 1 FROM gone WHERE t.name = gone.name
)
SELECT name, slot, permits, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint,
       rowlock_ring(name)
  FROM gone
