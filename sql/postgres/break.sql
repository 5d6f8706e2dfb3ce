-- Take a grant away and fence its holder out by bumping the name's token.
--
-- $1 name  $2 slot  $3 token that must hold it, 0: whichever does
-- columns: the row that was removed. No row: nobody, or another token, holds it.
--
-- Atomic: one statement. It waits for the token row, that is for a grant in flight or a guarded
-- transaction; then the row is looked at again.

/* rowlock:break */
WITH counter AS MATERIALIZED (
    SELECT name FROM rowlock_tokens WHERE name = $1::text FOR NO KEY UPDATE
), gone AS (
    DELETE FROM rowlock_locks l USING counter c
     WHERE l.name = c.name AND l.slot = $2::integer AND ($3::bigint = 0 OR l.token = $3::bigint)
    RETURNING l.*
), bumped AS (
    UPDATE rowlock_tokens t SET token = t.token + 1 FROM gone WHERE t.name = gone.name
)
SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       (date_part('epoch', clock_timestamp()) * 1000000)::bigint
  FROM gone
