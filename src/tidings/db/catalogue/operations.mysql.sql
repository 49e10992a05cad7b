-- stored_tables: every table, and how it is stored
SELECT table_name AS table_name, IF(engine = 'InnoDB', 'durable', 'not durable') AS storage
  FROM information_schema.tables WHERE table_schema = :schema AND table_type = 'BASE TABLE';

-- stored_columns: every column with its type, whether it may be empty, its default and its collation
SELECT table_name AS table_name, column_name AS column_name, column_type AS type, is_nullable = 'YES' AS nullable,
       NULLIF(column_default, 'NULL') AS default_text, extra AS extra, collation_name AS collation
  FROM information_schema.columns WHERE table_schema = :schema ORDER BY table_name, ordinal_position;

-- stored_indexes: every usable index with its columns in order
SELECT table_name AS table_name, index_name AS index_name, index_name = 'PRIMARY' AS is_primary,
       MIN(non_unique) = 0 AS is_unique, LOWER(MIN(index_type)) AS method, NULL AS predicate,
       GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ' ') AS columns
  FROM information_schema.statistics WHERE table_schema = :schema GROUP BY table_name, index_name;

-- stored_checks: every CHECK that is enforced
SELECT table_name AS table_name, constraint_name AS check_name
  FROM information_schema.table_constraints WHERE table_schema = :schema AND constraint_type = 'CHECK';

-- stored_triggers: every trigger that fires
SELECT event_object_table AS table_name, trigger_name AS trigger_name
  FROM information_schema.triggers WHERE trigger_schema = :schema;

-- granted_rights: one line of text for each grant of a role
SHOW GRANTS FOR :grantee;
