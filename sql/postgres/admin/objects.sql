-- Finds what has one of our names and is not as schema.sql makes it.
--
-- {text} the text of the schema step, as the library would run it
-- columns:
-- - the object
-- - what is wrong with it, and what to do
-- - whether an upgrade mends it. NULL: it is only a warning.
-- - level. Below 0: tables of an earlier version may have it. Above 0: tables of a later version
--   may have it.
-- No row: all is as it should be, or nothing is there.
--
-- A plain read of the catalogue. It reads none of our tables and calls none of our functions,
-- because another user may have prepared them as a trap. A user who may change a table or a
-- function can run code with the rights of all its users. So owners must be trusted:
-- - the user who asks, and the roles it is in
-- - the owners of the schema and the database
-- - superusers
-- A superuser is in every role, so memberships are looked up. pg_depend does not list the server's
-- own functions that a default, a constraint or an index needs. So everything in pg_depend belongs
-- to a user.

/* rowlock:objects */
WITH RECURSIVE mine (oid) AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
    UNION SELECT m.roleid FROM pg_catalog.pg_auth_members m JOIN mine ON m.member = mine.oid
), home AS (
    SELECT n.oid, n.nspname, n.nspowner, n.nspacl
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE c.oid = pg_catalog.to_regclass('rowlock_meta')::oid
), trusted (oid) AS (
    SELECT mine.oid FROM mine
    UNION SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolsuper
    UNION SELECT d.datdba FROM pg_catalog.pg_database d
     WHERE d.datname = pg_catalog.current_database()
    UNION SELECT n.nspowner FROM pg_catalog.pg_namespace n
     WHERE n.oid IN (SELECT home.oid FROM home
                     UNION SELECT c.relnamespace FROM pg_catalog.pg_class c
                      WHERE c.oid = pg_catalog.to_regclass('rowlock_locks')::oid)
), named (name) AS (
    VALUES ('rowlock_meta'::text), ('rowlock_locks'::text), ('rowlock_tokens'::text),
           ('rowlock_waiters'::text), ('rowlock_fences'::text), ('rowlock_once'::text),
           ('rowlock_walks'::text), ('rowlock_members'::text)
), tables AS (
    SELECT c.oid, c.relname::text AS name, c.relowner AS owner, c.relkind,
           c.relrowsecurity OR c.relforcerowsecurity AS secured
      FROM named JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass(named.name)::oid
), made AS (
    SELECT pg_catalog.split_part(
               pg_catalog.substr(p.part, pg_catalog.strpos(p.part, ' '::text) + 1),
               '"('::text, 1) || '"' AS name,
           pg_catalog.btrim(pg_catalog.regexp_replace(
                                pg_catalog.split_part(pg_catalog.split_part(p.part, '"('::text, 2),
                                                      ')'::text, 1),
                                E'\\s+'::text, ' '::text, 'g'::text), ' '::text) AS arguments,
           pg_catalog.split_part(p.part, '$$'::text, 2) AS body,
           pg_catalog.lower(pg_catalog.split_part(p.part, ' '::text, 1)) AS kind
      FROM ROWS FROM (pg_catalog.unnest(pg_catalog.string_to_array(
               {text}::text, 'CREATE OR REPLACE '::text)))
           WITH ORDINALITY AS p (part, n)
     WHERE p.n > 1
), functions AS (
    SELECT p.oid, m.kind, m.name, p.proname::text || '('
           || pg_catalog.pg_get_function_identity_arguments(p.oid) || ')' AS shown,
           p.proowner AS owner,
           p.prokind::text = pg_catalog.left(m.kind, 1) AND pg_catalog.regexp_replace(
               pg_catalog.pg_get_function_identity_arguments(p.oid), E'\\mIN '::text, ''::text,
               'g'::text) = m.arguments AS expected,
           p.prosrc = m.body AS same,
           NOT p.prosecdef AND p.proconfig IS NULL AND p.provolatile = 'v'
               AND l.lanname IN ('plpgsql', 'sql') AS tidy
      FROM made m JOIN pg_catalog.pg_namespace n ON true
      JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid
      JOIN pg_catalog.pg_language l ON l.oid = p.prolang
     WHERE m.name = '"' || n.nspname::text || '"."' || p.proname::text || '"'
), needs AS (
    SELECT t.name, d.classid, d.objid FROM tables t
      JOIN pg_catalog.pg_attrdef a ON a.adrelid = t.oid
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_attrdef'::regclass::oid
          AND d.objid = a.oid
     WHERE d.refclassid IN ('pg_catalog.pg_proc'::regclass::oid,
                            'pg_catalog.pg_operator'::regclass::oid,
                            'pg_catalog.pg_type'::regclass::oid)
    UNION
    SELECT t.name, d.classid, d.objid FROM tables t
      JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_constraint'::regclass::oid
          AND d.objid = k.oid
     WHERE d.refclassid IN ('pg_catalog.pg_proc'::regclass::oid,
                            'pg_catalog.pg_operator'::regclass::oid,
                            'pg_catalog.pg_type'::regclass::oid)
    UNION
    SELECT t.name, d.classid, d.objid FROM tables t
      JOIN pg_catalog.pg_index i ON i.indrelid = t.oid
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::regclass::oid
          AND d.objid = i.indexrelid
     WHERE d.refclassid IN ('pg_catalog.pg_proc'::regclass::oid,
                            'pg_catalog.pg_operator'::regclass::oid,
                            'pg_catalog.pg_type'::regclass::oid,
                                'pg_catalog.pg_opclass'::regclass::oid)
    UNION
    SELECT t.name, d.classid, d.objid FROM tables t
      JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_class'::regclass::oid
          AND d.objid = t.oid AND d.objsubid > 0
     WHERE d.refclassid = 'pg_catalog.pg_type'::regclass::oid
)
SELECT 'table ' || t.name, 'it belongs to role ' || r.rolname::text
       || ', who may change what it does: if you trust that role, give the '
       'table to one that is trusted (ALTER TABLE ... OWNER TO); if not, drop or rename it, and '
       'install', false, 0
  FROM tables t JOIN pg_catalog.pg_roles r ON r.oid = t.owner
      WHERE t.owner NOT IN (SELECT trusted.oid FROM trusted)
UNION ALL
SELECT f.kind || ' ' || f.shown, 'it belongs to role ' || r.rolname::text
       || ', who may change what it does: if you trust that role, give '
       'it to one that is trusted (ALTER ROUTINE ... OWNER TO); if not, drop it, and '
       'run `rowlock upgrade`', false, 0
  FROM functions f JOIN pg_catalog.pg_roles r ON r.oid = f.owner
      WHERE f.owner NOT IN (SELECT trusted.oid FROM trusted)
UNION ALL
SELECT 'table ' || t.name,
       'it is not a table, but a view, a foreign table or similar: drop or rename it, and install',
       false, 0
  FROM tables t WHERE t.relkind <> 'r'
UNION ALL
SELECT 'type ' || y.typname::text,
       'it has the name of a table of rowlock''s, but is not a table: drop or rename it, and '
       'install',
       false, 0
  FROM named n JOIN pg_catalog.pg_type y ON y.oid = pg_catalog.to_regtype(n.name)::oid
      WHERE y.typrelid = '0'::oid
UNION ALL
SELECT 'table ' || t.name, 'it has the trigger ' || g.tgname::text
       || ', which is not rowlock''s: drop it', false, 0
  FROM tables t JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
UNION ALL
SELECT 'table ' || t.name, 'it has the rule ' || w.rulename::text
       || ', which is not rowlock''s: drop it', false, 0
  FROM tables t JOIN pg_catalog.pg_rewrite w ON w.ev_class = t.oid WHERE t.relkind = 'r'
UNION ALL
SELECT 'table ' || t.name, 'it has row level security, which hides rows from some users: drop its '
                           'policies, and disable it', false, 0
  FROM tables t WHERE t.secured OR EXISTS (SELECT FROM pg_catalog.pg_policy p
                                           WHERE p.polrelid = t.oid)
UNION ALL
SELECT 'table ' || t.name, 'it inherits from a table or another inherits from it: drop it and the '
                           'other, and install', false, 0
  FROM tables t WHERE EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = t.oid
                              OR i.inhparent = t.oid)
UNION ALL
SELECT 'table ' || t.name, 'it has the constraint ' || k.conname::text
       || ', which is not rowlock''s: drop it', false, 0
  FROM tables t JOIN pg_catalog.pg_constraint k ON k.conrelid = t.oid OR k.confrelid = t.oid
      WHERE k.contype NOT IN ('p', 'c', 'n')
UNION ALL
SELECT DISTINCT 'table ' || n.name,
       'a default, constraint, index or column of it needs a function, operator or type that is '
       'not the server''s own: drop or rename the table, and install', false, 0
  FROM needs n
UNION ALL
SELECT f.kind || ' ' || f.shown,
       'it has the name of a ' || f.kind || ' of rowlock''s, and is none or has other parameters: '
       'drop it, and run `rowlock upgrade`', false, 0
  FROM functions f WHERE NOT f.expected
UNION ALL
SELECT f.kind || ' ' || f.shown,
       'it is not what this version makes, or was made for another schema or prefix: run `rowlock '
       'upgrade`', true, 0
  FROM functions f WHERE f.expected AND NOT (f.tidy AND f.same)
UNION ALL
SELECT m.kind || ' ' || m.name, 'it is missing: run `rowlock upgrade`', true, -1
  FROM made m, home WHERE NOT EXISTS (SELECT FROM functions f WHERE f.name = m.name AND f.expected)
UNION ALL
SELECT 'schema ' || h.nspname::text, 'others may create in it ('
       || coalesce(r.rolname::text, 'PUBLIC') || '): REVOKE CREATE ON SCHEMA '
       || pg_catalog.quote_ident(h.nspname::text)
           || ' FROM them, or install into a schema of its own', NULL, 0
  FROM (SELECT h.nspname, a.grantee FROM home h, pg_catalog.aclexplode(h.nspacl) a
         WHERE a.privilege_type = 'CREATE' AND a.grantee NOT IN (SELECT trusted.oid FROM trusted)
           AND a.grantee NOT IN (SELECT t.owner FROM tables t)) h
  LEFT JOIN pg_catalog.pg_roles r ON r.oid = h.grantee
