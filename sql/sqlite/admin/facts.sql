-- Asks what rowlock_check() reports about the file.
--
-- columns: those of sql/README.md
--
-- FULL leaves one gap if journal_mode is DELETE. A power failure may undo the deletion of a
-- journal, which then takes the last commit back. EXTRA closes the gap.

/* rowlock:facts */
SELECT 'SQLite ' || sqlite_version(), {clock}, query_only, 'serializable', 1,
       'journal_mode ' || journal, journal NOT IN ('off', 'memory'),
       k.collation, k.collation = 'BINARY' COLLATE NOCASE,
       'synchronous ' || CASE level WHEN 0 THEN 'off' WHEN 1 THEN 'normal' WHEN 2 THEN 'full'
                                    ELSE 'extra' END,
       journal NOT IN ('off', 'memory') AND level >= CASE journal WHEN 'delete' THEN 3 ELSE 2 END,
       (SELECT count(*) = 4 FROM sqlite_schema
         WHERE type = 'table'
           AND name COLLATE NOCASE IN ({prefix} || 'fences', {prefix} || 'once',
                                       {prefix} || 'walks', {prefix} || 'members')),
       0, '', 'none', 1, 0, 0, 0, 0
  FROM (SELECT journal_mode AS journal FROM pragma_journal_mode),
       (SELECT synchronous AS level FROM pragma_synchronous), pragma_query_only,
       (SELECT coalesce((SELECT x.coll FROM pragma_index_list({prefix} || 'locks', {schema}) AS i
                           JOIN pragma_index_xinfo(i.name, {schema}) AS x
                          WHERE i.origin = 'pk' AND x.name = 'name'), 'unknown') AS collation) k
