-- Removes a grant, and moves the name's token on, which fences its holder out.
--
-- {name}  {token} of the grant
-- columns: the removed row. No row: there is no grant with this token.
--
-- Atomic: the procedure does it in one transaction, under a lock of the name's token row.

/* rowlock:break */
CALL rowlock_break({name}, {token})
