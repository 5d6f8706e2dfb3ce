-- Finds what has one of our names and is not as schema.sql makes it.
--
-- {text} the text of the schema step, as the library would run it
-- columns:
-- - the object. One row, that of the first procedure, tells that others are missing.
-- - what is wrong with it, and what to do
-- - whether an upgrade mends it. NULL: it is only a warning, since this user may not see enough to
--   tell.
-- - level. Below 0: tables of an earlier version may have it. Above 0: tables of a later version
--   may have it.
-- No row: all is as it should be, or nothing is there.
--
-- A plain read of the catalogue. It reads none of our tables and calls none of our routines.
-- - A user sees the bodies of other users' procedures with SHOW_ROUTINE (MySQL) or with SELECT on
--   mysql.proc (MariaDB).
-- - A user sees triggers with the TRIGGER privilege.
-- - A user does not see a procedure that it may not call. So missing ones are counted only where
--   this user has made all the others, or may call all procedures of the server.
--
-- `head` is the text before an object's own part, and `ours` is that part. Bodies are compared
-- without white space, and without the marks of comments that MariaDB runs: it removes them. Names
-- without our prefix are left out early, and all is compared as latin1: a search for a name in the
-- text is slow, above all in utf8mb4. Our text has no character of another set. LIMIT has the
-- procedures counted once, and not for each row: that was half of the time. `invoker` of a
-- column says whether a later version may have added it. Of parameters only names and modes are
-- compared, since their types change no right.

/* rowlock:objects */
SELECT IF(o.same AND o.missing, 'procedures', CONCAT(o.kind, ' `', o.name, '`')),
       CASE WHEN o.same AND o.missing
            THEN CONCAT('missing: ', o.missing, '; run `rowlock upgrade`')
            WHEN o.kind = 'procedure' AND o.same IS NULL
            THEN CONCAT('this user may not see the body that ', o.definer,
                        ' has given it; to compare it with rowlock''s, check '
                        'as that account, or grant SHOW_ROUTINE (MariaDB: SELECT on mysql.proc)')
            WHEN o.kind = 'procedure' AND o.same
            THEN CONCAT('it was made by ', o.definer,
                        ', but other procedures of rowlock''s by another account: if you do '
                        'not trust both, drop it and run `rowlock upgrade`')
            WHEN o.kind = 'procedure' AND o.definer = CURRENT_USER()
            THEN 'it is of another version of rowlock, or was changed: run `rowlock upgrade`'
            WHEN o.kind = 'procedure'
            THEN CONCAT('its body is not rowlock''s, and ', o.definer,
                        ' has made it: drop it and run `rowlock upgrade`; or, if '
                        'you trust that account, run `rowlock upgrade` by it')
            WHEN o.kind = 'trigger'
            THEN CONCAT(o.definer, ' has it run at changes of the table `', o.holder, '`: drop it')
            WHEN o.kind = 'column'
            THEN CONCAT('the table `', o.holder,
                        '` has no such column: drop it; or choose another database or prefix')
            ELSE CONCAT('it is a ', o.body,
                        ', and should be a table of InnoDB: rename it, or choose another database '
                        'or prefix')
       END,
       CASE WHEN o.same AND o.missing THEN 1 WHEN o.kind <> 'procedure' THEN 0
            WHEN o.same IS NULL THEN NULL
            ELSE NOT o.same AND o.definer = CURRENT_USER() END,
       IF(o.same AND o.missing, -1, o.kind = 'column' AND o.invoker)
  FROM (SELECT CASE WHEN n.kind = 'procedure' AND n.name = MIN(n.name) OVER (PARTITION BY n.kind)
                         AND (MIN(n.definer = CURRENT_USER()) OVER (PARTITION BY n.kind)
                              OR EXISTS (SELECT * FROM information_schema.user_privileges u
                                          WHERE u.privilege_type = 'EXECUTE'
                                            AND REPLACE(u.grantee, '''', '') = CURRENT_USER()))
                    THEN n.made - COUNT(*) OVER (PARTITION BY n.kind)
                    ELSE 0 END AS missing,
               n.kind, n.name, n.holder, n.definer, n.invoker, n.body, n.ours,
               n.invoker AND CONCAT(n.parameters, ' ',
                                    TRIM(REGEXP_REPLACE(n.body, '([[:space:]]|/[*]M!|[*]/)+', ' ')))
               COLLATE latin1_bin
               = CONCAT(REGEXP_REPLACE(REGEXP_REPLACE(
                            SUBSTRING_INDEX(n.ours, ' SQL DATA SQL SECURITY INVOKER', 1),
                            '[)][^)]*$', ''),
                            ' +(VARBINARY|VARCHAR|LONGTEXT|BIGINT|INT)[^,]*|[[:space:]]', ''),
                        RTRIM(REGEXP_REPLACE(
                            SUBSTRING_INDEX(n.ours, ' SQL DATA SQL SECURITY INVOKER', -1),
                            '([[:space:]]|/[*]M!|[*]/)+', ' ')), ' END') AS same,
               n.kind = 'procedure' AND MIN(n.definer) OVER (PARTITION BY n.kind)
                                        <> MAX(n.definer) OVER (PARTITION BY n.kind) AS many
          FROM (SELECT f.kind, f.name, f.holder, f.definer, f.invoker,
                       CONVERT(f.parameters USING latin1) AS parameters,
                       CONVERT(f.body USING latin1) AS body,
                       SUBSTRING_INDEX(SUBSTRING_INDEX(g.text, f.head, -1), f.foot, 1) AS ours,
                       g.made
                  FROM (SELECT t.text,
                               CHAR_LENGTH(REPLACE(t.text, 'PROCEDURE IF NOT', '+PROCEDURE IF NOT'))
                               - CHAR_LENGTH(t.text) AS made
                          FROM (SELECT CONVERT({text} USING latin1) AS text) t LIMIT 1) g
                  JOIN (SELECT 'procedure' AS kind, r.routine_name AS name, '' AS holder, r.definer,
                               r.routine_definition AS body, r.security_type = 'INVOKER' AS invoker,
                               IFNULL(q.parameters, '') AS parameters,
                               CONVERT(CONCAT('PROCEDURE IF NOT EXISTS `', r.routine_schema, '`.`',
                                              r.routine_name, '`(') USING latin1) AS head,
                               CONVERT(CONCAT(CHAR(10), 'END;') USING latin1) AS foot
                          FROM information_schema.routines r
                          LEFT JOIN (SELECT p.specific_name,
                                            GROUP_CONCAT(
                                                IF(p.parameter_mode = 'IN', '', p.parameter_mode),
                                                p.parameter_name
                                                ORDER BY p.ordinal_position) AS parameters
                                       FROM information_schema.parameters p
                                      WHERE p.specific_schema = SUBSTRING_INDEX(
                                                SUBSTRING_INDEX('rowlock_locks', '`', 2), '`', -1)
                                        AND LOCATE(SUBSTRING_INDEX(
                                                SUBSTRING_INDEX('rowlock_', '`', -2), '`', 1),
                                                p.specific_name) = 1
                                      GROUP BY p.specific_name) q
                                        ON q.specific_name = r.specific_name
                         WHERE r.routine_schema
                               = SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_locks', '`', 2), '`', -1)
                           AND LOCATE(SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_', '`', -2), '`', 1),
                                      r.routine_name) = 1
                           AND r.routine_type = 'PROCEDURE'
                        UNION ALL
                        SELECT 'table', t.table_name, '', '',
                               CONCAT(t.table_type, ' ', IFNULL(t.engine, '')), 1, '',
                               CONVERT(CONCAT('TABLE IF NOT EXISTS `', t.table_schema, '`.`',
                                              t.table_name, '` (')
                                       USING latin1), ') ENGINE'
                          FROM information_schema.tables t
                         WHERE t.table_schema
                               = SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_locks', '`', 2), '`', -1)
                           AND LOCATE(SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_', '`', -2), '`', 1),
                                      t.table_name) = 1
                           AND (t.table_type <> 'BASE TABLE' OR IFNULL(t.engine, '') <> 'InnoDB')
                        UNION ALL
                        SELECT 'trigger', t.trigger_name, t.event_object_table, t.definer, '', 1,
                               '', CONVERT(CONCAT('TABLE IF NOT EXISTS `', t.event_object_schema,
                                                  '`.`',
                                              t.event_object_table, '` (') USING latin1), ') ENGINE'
                          FROM information_schema.triggers t
                         WHERE t.event_object_schema
                               = SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_locks', '`', 2), '`', -1)
                           AND LOCATE(SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_', '`', -2), '`', 1),
                                      t.event_object_table) = 1
                        UNION ALL
                        SELECT 'column', c.column_name, c.table_name, '',
                               IF(c.extra LIKE '%GENERATED%', '',
                                  CONCAT('    ', c.column_name, ' ')),
                               c.is_nullable = 'YES' AND c.extra NOT LIKE '%GENERATED%', '',
                               CONVERT(CONCAT('TABLE IF NOT EXISTS `', c.table_schema, '`.`',
                                              c.table_name, '` (')
                                       USING latin1), ') ENGINE'
                          FROM information_schema.columns c
                         WHERE c.table_schema
                               = SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_locks', '`', 2), '`', -1)
                           AND LOCATE(SUBSTRING_INDEX(SUBSTRING_INDEX('rowlock_', '`', -2), '`', 1),
                                      c.table_name) = 1) f
                    ON LOCATE(f.head, g.text COLLATE latin1_swedish_ci) > 0) n) o
 WHERE CASE o.kind WHEN 'procedure' THEN o.missing OR o.same IS NULL OR NOT o.same
       OR (o.many AND o.definer <> CURRENT_USER())
                   WHEN 'column' THEN o.body = '' OR LOCATE(o.body,
                                                            o.ours COLLATE latin1_swedish_ci) = 0
                   ELSE TRUE END
 ORDER BY o.kind, o.name
