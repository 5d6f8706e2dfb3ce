-- Finds the highest token granted for a name.
--
-- {name}
-- columns: token; when it was granted. No row: never granted, or the counter was folded into the
-- floor.

/* rowlock:last */
SELECT token, granted FROM rowlock_tokens WHERE name = {name}::text
