-- What is there by our names, and is not as schema.sql makes it.
--
-- {text} the text of the schema step, as the library would run it
-- columns: object; what is wrong with it and what to do; whether installing again mends it, NULL:
-- it is a warning only. No row: all is as it should be, or nothing is there.
--
-- A plain read of the catalogue: it reads none of our tables. A table is ours by name if the schema
-- makes one of that name, and as it should be if its definition stands in the schema word for word,
-- but for quotes around names. An index that comes with a table has no text of its own.

/* rowlock:objects */
SELECT o.type || ' ' || o.name,
       CASE o.type
           WHEN 'table' THEN 'its columns or constraints are not ours'
           WHEN 'view' THEN 'it stands in the place of our table'
           ELSE 'it is not ours, and changes what our table ' || o.tbl_name || ' does'
       END
       || ': somebody else has made it, or another version of rowlock; '
       || 'drop it, or use another file or prefix', 0
  FROM sqlite_schema o
 WHERE instr(lower(replace({text}, '"', '')), 'create table if not exists main.'
             || lower(o.tbl_name) || ' (') > 0
   AND NOT (o.type = 'index' AND o.sql IS NULL)
   AND NOT (o.type = 'table' AND o.sql LIKE 'CREATE TABLE %'
            AND instr(replace({text}, '"', ''),
                      '.' || o.name || ' '
                      || substr(replace(o.sql, '"', ''), instr(replace(o.sql, '"', ''), '('))
                      || ';') > 0)
