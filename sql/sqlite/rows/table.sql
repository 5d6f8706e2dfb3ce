-- Describes the columns of a caller's table.
--
-- {schema} NULL: main  {name}. Each occurs several times.
-- rows:
-- - column name
-- - category, by its declared type
-- - never NULL
-- - the highest value of an integer, else 0
-- - ''
-- - four patterns: how % is unpacked, given, compared and shown
-- - the unique keys it is in, each as id/number of columns
-- - the schema where the table was found
-- - how a comparison with % is written
-- Then a row without a column name for each kind that a parameter of the caller's own SQL may have.
--
-- A plain read. Rows are written one at a time here, so nothing is packed.

/* rowlock:table */
SELECT c.name,
       CASE WHEN upper(c.type) LIKE '%INT%' THEN 'int'
            WHEN upper(c.type) LIKE '%CHAR%' OR upper(c.type) LIKE '%CLOB%'
                OR upper(c.type) LIKE '%TEXT%' THEN 'text'
            WHEN upper(c.type) LIKE '%BLOB%' THEN 'bytes'
            WHEN upper(c.type) LIKE '%REAL%' OR upper(c.type) LIKE '%FLOA%'
                OR upper(c.type) LIKE '%DOUB%' THEN 'endless'
            WHEN upper(c.type) LIKE '%BOOL%' THEN 'bool'
            WHEN upper(c.type) LIKE '%DEC%' OR upper(c.type) LIKE '%NUM%' THEN 'rough'
            WHEN upper(c.type) LIKE '%DATE%' OR upper(c.type) LIKE '%TIME%' THEN 'time'
            ELSE 'any' END,
       c."notnull" OR (c.pk > 0 AND upper(c.type) = 'INTEGER'),
       CASE WHEN upper(c.type) LIKE '%INT%' THEN 9223372036854775807 ELSE 0 END,
       '', '%', '%', '%', '%',
       coalesce((SELECT group_concat(i.seq || '/' || (
                            SELECT count(*)
                              FROM pragma_index_info(i.name, coalesce({schema}, 'main'))), ' ')
                   FROM pragma_index_list({name}, coalesce({schema}, 'main')) AS i
                   JOIN pragma_index_info(i.name, coalesce({schema}, 'main')) AS k
                  WHERE i."unique" AND NOT i.partial AND k.name = c.name), '')
       || CASE WHEN c.pk > 0
               THEN ' pk/' || (SELECT count(*)
                                 FROM pragma_table_info({name}, coalesce({schema}, 'main')) AS p
                                WHERE p.pk > 0)
               ELSE '' END,
       coalesce({schema}, 'main'), '# ~ %'
  FROM pragma_table_info({name}, coalesce({schema}, 'main')) AS c
UNION ALL
SELECT NULL, k.column1, 0, 0, '', '%', '%', '', '', NULL, NULL, NULL
  FROM (VALUES ('int'), ('bool'), ('endless'), ('decimal'), ('text'), ('time'), ('bytes')) AS k
