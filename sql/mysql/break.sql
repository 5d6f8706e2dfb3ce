-- Take a grant away and fence its holder out by bumping the name's token.
--
-- ? name  ? slot  ? token that must hold it, 0: whichever does
-- columns: the row that was removed. No row: nobody, or another token, holds it.
--
-- Atomic: the procedure (schema.sql) does it in one transaction under the name's token row.

/* rowlock:break */
CALL rowlock_break(?, ?, ?)
