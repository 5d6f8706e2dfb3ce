-- Take a grant away and fence its holder out by bumping the name's token.
--
-- {name}  {token} that holds it
-- columns: the row that was removed. No row: this token does not hold it.
--
-- Atomic: the procedure does it in one transaction under the name's token row.

/* rowlock:break */
CALL rowlock_break({name}, {token})
