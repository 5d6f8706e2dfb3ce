-- What is there by our names, and is not as schema.sql makes it.
--
-- ?1 the text of the schema step, as the library would run it
-- columns: object; what is wrong with it and what to do; whether installing again mends it, NULL: it is a warning
-- only. No row: all is as it should be, or nothing is there.
--
-- A plain read of the catalogue: it reads none of our tables.

/* rowlock:objects */
SELECT 'rowlock_meta', '', 0 WHERE ?1 IS NULL
