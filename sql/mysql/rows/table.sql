-- Describes the columns of a caller's table.
--
-- {schema} NULL: the current database  {name}. Each occurs several times.
-- rows:
-- - column name
-- - category (wide: an unsigned integer of 64 bits)
-- - never NULL
-- - the highest value of an integer, else 0, and -1 if it is generated
-- - its type in JSON_TABLE
-- - four patterns: how % is unpacked, given, compared and shown
-- - the unique keys it is in, each as id/number of columns
-- - the schema where the table was found
-- - how a comparison with % is written
-- Then a row without a column name for each kind that a parameter of the caller's own SQL may have.
--
-- A plain read.
-- - Texts out of JSON are in utf8mb4, independent of the connection. Before 8.0.31 MySQL has no
--   syntax for this, and uses the connection's character set.
-- - A text is compared in its column's own character set, so that the key is found by its index. A
--   text with a character that this set lacks equals nothing.
-- - Bits have no comparison: given as bytes, they would be read as a number in digits.
-- - The LIMIT is high enough for all rows: without it, sql_select_limit of the session would hold.

/* rowlock:table */
SELECT CAST(CONVERT(c.COLUMN_NAME USING utf8mb4) AS BINARY),
       CASE WHEN c.DATA_TYPE = 'bigint' AND c.COLUMN_TYPE LIKE '%unsigned%' THEN 'wide'
            WHEN c.DATA_TYPE IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year')
              THEN 'int'
            WHEN c.DATA_TYPE IN ('float', 'double') THEN 'real'
            WHEN c.DATA_TYPE = 'decimal' THEN 'decimal'
            WHEN c.DATA_TYPE IN ('date', 'datetime', 'timestamp') THEN 'dated'
            WHEN c.DATA_TYPE = 'time' THEN 'local'
            WHEN c.DATA_TYPE IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob',
                                 'longblob', 'bit') THEN 'bytes'
            ELSE 'text' END,
       c.IS_NULLABLE = 'NO',
       CASE WHEN c.GENERATION_EXPRESSION <> '' THEN -1 ELSE CASE c.DATA_TYPE
            WHEN 'tinyint' THEN 127 WHEN 'smallint' THEN 32767 WHEN 'mediumint' THEN 8388607
            WHEN 'int' THEN 2147483647 WHEN 'bigint' THEN 9223372036854775807 ELSE 0 END
       + CASE WHEN c.COLUMN_TYPE NOT LIKE '%unsigned%' THEN 0 WHEN c.DATA_TYPE = 'tinyint' THEN 128
              WHEN c.DATA_TYPE = 'smallint' THEN 32768 WHEN c.DATA_TYPE = 'mediumint' THEN 8388608
              WHEN c.DATA_TYPE = 'int' THEN 2147483648 ELSE 0 END END,
       CASE WHEN c.DATA_TYPE = 'bigint' AND c.COLUMN_TYPE LIKE '%unsigned%' THEN 'DECIMAL(20)'
            WHEN c.DATA_TYPE IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year')
              THEN 'BIGINT'
            WHEN c.DATA_TYPE IN ('float', 'double') THEN 'DOUBLE'
            ELSE 'LONGTEXT /*M! CHARACTER SET utf8mb4 */ /*!80031 CHARACTER SET utf8mb4 */' END,
       CASE WHEN c.DATA_TYPE IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob',
                                 'longblob', 'bit') THEN 'UNHEX(%)'
            ELSE '%' END,
       CASE WHEN c.DATA_TYPE IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year',
                                 'float', 'double', 'binary', 'varbinary', 'tinyblob', 'blob',
                                 'mediumblob', 'longblob', 'bit') THEN '%'
            ELSE 'CONVERT(% USING utf8mb4)' END,
       CASE WHEN c.DATA_TYPE = 'bit' THEN ''
            WHEN c.DATA_TYPE = 'decimal'
              THEN CONCAT('CAST(CONVERT(% USING utf8mb4) AS DECIMAL(65,',
                          LEAST(30, 65 - (c.NUMERIC_PRECISION - c.NUMERIC_SCALE)), '))')
            WHEN c.DATA_TYPE IN ('datetime', 'timestamp')
              THEN 'CAST(CONVERT(% USING utf8mb4) AS DATETIME(6))'
            WHEN c.DATA_TYPE = 'date' THEN 'CAST(CONVERT(% USING utf8mb4) AS DATE)'
            WHEN c.DATA_TYPE = 'time' THEN 'CAST(CONVERT(% USING utf8mb4) AS TIME(6))'
            WHEN c.CHARACTER_SET_NAME IS NULL
             AND c.DATA_TYPE NOT IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year',
                                     'float', 'double', 'binary', 'varbinary', 'tinyblob', 'blob',
                                     'mediumblob', 'longblob', 'bit')
              THEN 'CONVERT(% USING utf8mb4)'
            WHEN c.CHARACTER_SET_NAME IS NULL THEN '%'
            WHEN c.CHARACTER_SET_NAME = 'utf8mb4'
              THEN CONCAT('CONVERT(% USING utf8mb4) COLLATE ', c.COLLATION_NAME)
            ELSE CONCAT('IF(CAST(CONVERT(CONVERT(CONVERT(% USING utf8mb4) USING ',
                        c.CHARACTER_SET_NAME,
                        ') USING utf8mb4) AS BINARY) = CAST(% AS BINARY), '
                        'CONVERT(CONVERT(% USING utf8mb4) USING ',
                        c.CHARACTER_SET_NAME, '), NULL) COLLATE ', c.COLLATION_NAME) END,
       CASE WHEN c.CHARACTER_SET_NAME IS NOT NULL THEN 'CAST(CONVERT(% USING utf8mb4) AS BINARY)'
            ELSE '%' END,
       (SELECT GROUP_CONCAT(HEX(s.INDEX_NAME), '/',
                   (SELECT COUNT(*) FROM information_schema.STATISTICS n
                     WHERE n.TABLE_SCHEMA = COALESCE(CONVERT({schema} USING utf8mb4), DATABASE())
                       AND n.TABLE_NAME = CONVERT({name} USING utf8mb4)
                       AND n.INDEX_NAME = s.INDEX_NAME)
                   SEPARATOR ' ')
          FROM information_schema.STATISTICS s
         WHERE s.TABLE_SCHEMA = COALESCE(CONVERT({schema} USING utf8mb4), DATABASE())
           AND s.TABLE_NAME = CONVERT({name} USING utf8mb4) AND s.COLUMN_NAME = c.COLUMN_NAME
           AND s.NON_UNIQUE = 0 AND s.SUB_PART IS NULL),
       CAST(CONVERT(c.TABLE_SCHEMA USING utf8mb4) AS BINARY), '# ~ %'
  FROM information_schema.COLUMNS c
 WHERE c.TABLE_SCHEMA = COALESCE(CONVERT({schema} USING utf8mb4), DATABASE())
   AND c.TABLE_NAME = CONVERT({name} USING utf8mb4)
UNION ALL SELECT NULL, 'int', 0, 0, 'BIGINT', '%', '%', '', '', NULL, NULL, NULL
UNION ALL SELECT NULL, 'bool', 0, 0, 'BIGINT', '%', '%', '', '', NULL, NULL, NULL
UNION ALL SELECT NULL, 'real', 0, 0, 'DOUBLE', '%', '%', '', '', NULL, NULL, NULL
UNION ALL SELECT NULL, 'decimal', 0, 0,
    'LONGTEXT /*M! CHARACTER SET utf8mb4 */ /*!80031 CHARACTER SET utf8mb4 */', '%',
    'CAST(CONVERT(% USING utf8mb4) AS DECIMAL(65,30))', '', '', NULL, NULL, NULL
UNION ALL SELECT NULL, 'text', 0, 0,
    'LONGTEXT /*M! CHARACTER SET utf8mb4 */ /*!80031 CHARACTER SET utf8mb4 */', '%',
    'CONVERT(% USING utf8mb4)', '', '', NULL, NULL, NULL
UNION ALL SELECT NULL, 'local', 0, 0,
    'LONGTEXT /*M! CHARACTER SET utf8mb4 */ /*!80031 CHARACTER SET utf8mb4 */', '%',
    'CONVERT(% USING utf8mb4)', '', '', NULL, NULL, NULL
UNION ALL SELECT NULL, 'bytes', 0, 0,
    'LONGTEXT /*M! CHARACTER SET utf8mb4 */ /*!80031 CHARACTER SET utf8mb4 */', 'UNHEX(%)', '%', '',
    '', NULL, NULL, NULL
LIMIT 18446744073709551615
