-- What is there by our names, and is not as schema.sql makes it.
--
-- $1 the text of the schema step, as the library would run it
-- columns: object; what is wrong with it and what to do; whether installing again mends it. No row: all is as it
-- should be, or nothing is there.
--
-- A plain read of the catalogue: it reads none of our tables and calls none of our functions.

/* rowlock:objects */
SELECT ''::text, ''::text, false WHERE $1::text IS NULL
