-- The highest token granted for a name.
--
-- {name}
-- columns: token, granted (when). No row: never granted, or its counter was folded into the floor.

/* rowlock:last */
SELECT token, granted FROM rowlock_tokens WHERE name = {name}
