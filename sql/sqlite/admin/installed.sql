-- Asks whether an installation was ever complete here: the row of rowlock_meta is made last.
--
-- columns: version
-- - No row: an installation was cut short.
-- - An error about a table or a column: there is no rowlock_meta, or it is another program's.
--
-- A plain read, for `install`, when the step `meta` says that a table is missing.

/* rowlock:installed */
SELECT version FROM rowlock_meta WHERE id = 1
