-- stored_tables: every table, and how it is stored
SELECT c.relname AS table_name,
       CASE c.relpersistence WHEN 'p' THEN 'durable' ELSE 'not durable' END AS storage
  FROM pg_catalog.pg_class c
 WHERE c.relnamespace = to_regnamespace(quote_ident(:schema)) AND c.relkind IN ('r', 'p');

-- stored_columns: every column with its type, whether it may be empty, its default and its collation
SELECT c.relname AS table_name, a.attname AS column_name,
       format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable,
       pg_get_expr(d.adbin, d.adrelid) AS default_text,
       CASE a.attidentity WHEN 'a' THEN 'assigned' ELSE '' END AS extra,
       nullif(l.collname, 'default') AS collation
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
 WHERE c.relnamespace = to_regnamespace(quote_ident(:schema)) AND c.relkind IN ('r', 'p')
 ORDER BY c.relname, a.attnum;

-- stored_indexes: every usable index with its columns in order, and its predicate
SELECT t.relname AS table_name, i.relname AS index_name, x.indisprimary AS is_primary, x.indisunique AS is_unique,
       m.amname AS method, pg_get_expr(x.indpred, x.indrelid) AS predicate,
       array_to_string(ARRAY(SELECT pg_get_indexdef(x.indexrelid, n, true)
                               FROM generate_series(1, x.indnkeyatts) AS n), ' ') AS columns
  FROM pg_catalog.pg_index x
  JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
  JOIN pg_catalog.pg_am m ON m.oid = i.relam
  JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
 WHERE t.relnamespace = to_regnamespace(quote_ident(:schema)) AND x.indisvalid AND x.indisready;

-- stored_checks: every CHECK that is enforced
SELECT t.relname AS table_name, k.conname AS check_name
  FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class t ON t.oid = k.conrelid
 WHERE t.relnamespace = to_regnamespace(quote_ident(:schema)) AND k.contype = 'c' AND k.convalidated;

-- stored_triggers: every trigger that fires
SELECT t.relname AS table_name, g.tgname AS trigger_name
  FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_class t ON t.oid = g.tgrelid
 WHERE t.relnamespace = to_regnamespace(quote_ident(:schema)) AND NOT g.tgisinternal AND g.tgenabled IN ('O', 'A');

-- granted_rights: what a role, or everybody (`public`), may do with our tables and routines
SELECT a.privilege_type AS verb, c.relname AS subject, '' AS column_name
  FROM pg_catalog.pg_class c, aclexplode(c.relacl) a
 WHERE c.relnamespace = to_regnamespace(quote_ident(:schema)) AND a.grantee = CASE :grantee WHEN 'public' THEN 0 ELSE to_regrole(quote_ident(:grantee))::oid END
UNION ALL
SELECT a.privilege_type, c.relname, t.attname
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
 WHERE c.relnamespace = to_regnamespace(quote_ident(:schema)) AND a.grantee = CASE :grantee WHEN 'public' THEN 0 ELSE to_regrole(quote_ident(:grantee))::oid END
UNION ALL
SELECT a.privilege_type, p.proname, ''
  FROM pg_catalog.pg_proc p, aclexplode(p.proacl) a
 WHERE p.pronamespace = to_regnamespace(quote_ident(:schema)) AND a.grantee = CASE :grantee WHEN 'public' THEN 0 ELSE to_regrole(quote_ident(:grantee))::oid END;
