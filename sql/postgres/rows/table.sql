-- Describes the columns of a caller's table.
--
-- {schema} NULL: where search_path finds it  {name}
-- rows:
-- - column name
-- - category
-- - never NULL
-- - the highest value of an integer, else 0, and -1 if it is generated
-- - element type of an array of it
-- - four patterns: how % is unpacked, given, compared and shown
-- - the unique keys it is in, each as id/number of columns; none if other tables inherit from this
--   one, since a key does not cover their rows
-- - the schema where the table was found
-- - how a comparison with % is written
-- Then a row without a column name for each kind that a parameter of the caller's own SQL may have.
--
-- A plain read. Operators are named with their schema, since search_path may have others that fit
-- better. A type that is not the server's own has the operators of its usual index, and both sides
-- have exactly that type. Unnesting takes an array of arrays apart completely, so arrays go as
-- texts. A cast has no length and precision, so it cuts nothing off: the assignment to the column
-- does what it does for every client.

/* rowlock:table */
SELECT a.attname::text,
       CASE WHEN y.oid IN (20::oid, 21::oid, 23::oid) THEN 'int'
            WHEN y.oid IN (700::oid, 701::oid) THEN 'float'
            WHEN y.oid = 1700::oid THEN 'numeric' WHEN y.oid = 16::oid THEN 'bool'
            WHEN y.oid = 17::oid THEN 'bytes'
            WHEN y.typcategory = 'S' AND y.typtype = 'b' THEN 'text'
            WHEN y.oid IN (1082::oid, 1083::oid, 1114::oid) THEN 'local'
            WHEN y.typcategory IN ('D', 'T') THEN 'time'
            ELSE 'other' END,
       a.attnotnull OR d.typnotnull,
       CASE WHEN a.attgenerated <> '' OR a.attidentity = 'a' THEN -1 ELSE CASE y.oid
            WHEN 21::oid THEN 32767 WHEN 23::oid THEN 2147483647
            WHEN 20::oid THEN 9223372036854775807 ELSE 0 END END,
       CASE y.typcategory WHEN 'A' THEN 'text' ELSE pg_catalog.format_type(y.oid, -1) END,
       CASE y.typcategory WHEN 'A' THEN '%::' || pg_catalog.format_type(y.oid, -1) ELSE '%' END,
       '%', '%', '%',
       (SELECT pg_catalog.string_agg(i.indexrelid::text || '/' || i.indnkeyatts::text, ' ')
          FROM pg_catalog.pg_index i
         WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indimmediate
           AND i.indpred IS NULL AND 0 <> ALL (i.indkey::int2[])
           AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
           AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits h
                             JOIN pg_catalog.pg_class k ON k.oid = h.inhrelid
                            WHERE h.inhparent = a.attrelid AND NOT k.relispartition)),
       (SELECT n.nspname::text FROM pg_catalog.pg_class c
          JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = a.attrelid),
       coalesce((SELECT '#::' || pg_catalog.quote_ident(m.nspname::text) || '.'
                        || pg_catalog.quote_ident(y.typname::text)
                        || ' OPERATOR(' || pg_catalog.quote_ident(n.nspname::text) || '.~) %::'
                        || pg_catalog.quote_ident(m.nspname::text) || '.'
                        || pg_catalog.quote_ident(y.typname::text)
                   FROM pg_catalog.pg_namespace m, pg_catalog.pg_opclass c
                   JOIN pg_catalog.pg_am h ON h.oid = c.opcmethod AND h.amname = 'btree'
                   JOIN pg_catalog.pg_amop p ON p.amopfamily = c.opcfamily
                       AND p.amoplefttype = y.oid AND p.amoprighttype = y.oid
                   JOIN pg_catalog.pg_operator o ON o.oid = p.amopopr AND o.oprname = '='
                   JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
                  WHERE c.opcintype = y.oid AND c.opcdefault AND m.oid = y.typnamespace
                        AND n.nspname <> 'pg_catalog'),
                '# OPERATOR(pg_catalog.~) %')
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type d ON d.oid = a.atttypid
  JOIN pg_catalog.pg_type y ON y.oid = CASE d.typtype WHEN 'd' THEN d.typbasetype ELSE d.oid END
 WHERE a.attrelid = pg_catalog.to_regclass(
           coalesce(pg_catalog.quote_ident({schema}::text) || '.', '')
           || pg_catalog.quote_ident({name}::text))::oid
   AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT NULL, k.kind, false, 0, k.type, '%', '%::' || k.type, '', '', NULL, NULL, NULL
  FROM (VALUES ('int', 'bigint'), ('float', 'double precision'), ('numeric', 'numeric'),
               ('text', 'text'), ('bytes', 'bytea'), ('bool', 'boolean'),
               ('time', 'timestamptz')) AS k (kind, type)
