-- Finds what has one of our names and is not as schema.sql makes it.
--
-- {text} the text of the schema step, as the library would run it
-- columns:
-- - the object
-- - what is wrong with it, and what to do
-- - whether an upgrade mends it
-- - level. Below 0: tables of an earlier version may have it. Above 0: tables of a later version
--   may have it.
-- No row: all is as it should be, or nothing is there.
--
-- A plain read of the catalogue. It reads none of our tables. A table has our name if the schema
-- makes a table of that name. It is as it should be if its definition equals the one in the schema,
-- apart from quotes and white space. ALTER TABLE adds a column behind the last one, in its own
-- layout. A definition that equals the other one without some columns is of another version. To see
-- this, `alike` counts the length of what both begin with. The rest of the shorter one must be the
-- end of the longer one, and only names may be between. An index that comes with a table has no
-- text of its own.

/* rowlock:objects */
WITH RECURSIVE ours (text) AS MATERIALIZED (
    SELECT replace(replace(replace({text}, '"', ''), ' ', ''), char(10), '')
), found AS MATERIALIZED (
    SELECT o.type, o.name, o.tbl_name, o.sql IS NULL AS automatic,
           replace(replace(replace(substr(o.sql, instr(o.sql, '(')), '"', ''), ' ', ''), char(10),
                   '') AS is_now,
           substr(ours.text, instr(lower(ours.text), 'createtableifnotexistsmain.'
                                   || lower(o.tbl_name) || '(')
                  + length('createtableifnotexistsmain.' || o.tbl_name)) AS made
      FROM sqlite_schema o, ours
     WHERE instr(lower(ours.text), 'createtableifnotexistsmain.' || lower(o.tbl_name) || '(') > 0
), compared AS MATERIALIZED (
    SELECT type, name, tbl_name, automatic, coalesce(is_now, '') AS is_now,
           substr(made, 1, instr(made, ';') - 1) AS should_be
      FROM found
), alike (name, is_now, should_be, count) AS (
    SELECT name, is_now, should_be, 0 FROM compared
     WHERE type = 'table' AND is_now <> should_be
    UNION ALL
    SELECT name, is_now, should_be, count + 1 FROM alike
     WHERE substr(is_now, count + 1, 1) = substr(should_be, count + 1, 1)
       AND count < length(is_now) AND count < length(should_be)
), differing AS (
    SELECT name, length(is_now) - length(should_be) AS more, max(count) AS count,
           CASE WHEN length(is_now) > length(should_be) THEN is_now ELSE should_be END AS longer,
           CASE WHEN length(is_now) > length(should_be) THEN should_be ELSE is_now END AS shorter
      FROM alike GROUP BY name
), of_another_version (name, level) AS (
    SELECT name, CASE WHEN more > 0 THEN 1 ELSE -1 END FROM differing
     WHERE more <> 0
       AND substr(shorter, count + 1) = substr(longer, count + 1 + abs(more))
       AND substr(longer, count + 1, abs(more)) NOT GLOB '*[^a-zA-Z0-9_,]*'
)
SELECT o.type || ' ' || o.name,
       CASE o.type
           WHEN 'table' THEN 'its columns or constraints are not rowlock''s'
           WHEN 'view' THEN 'it has the name of a table of rowlock''s'
           ELSE 'it is not rowlock''s, and changes what the table ' || o.tbl_name || ' does'
       END
       || ': another program or another version of rowlock has made it; '
       || 'drop it, or use another file or prefix', 0, coalesce(v.level, 0)
  FROM compared o LEFT JOIN of_another_version v ON v.name = o.name AND o.type = 'table'
 WHERE NOT (o.type = 'index' AND o.automatic)
   AND NOT (o.type = 'table' AND o.is_now = o.should_be)
