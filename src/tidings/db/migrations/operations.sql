-- wait_for_turn: one migrator at a time; the turn ends with the session
SELECT pg_advisory_lock(hashtextextended('tidings migrate ' || :schema, 0)), 1 AS got;

-- end_turn: the next migrator may go
SELECT pg_advisory_unlock(hashtextextended('tidings migrate ' || :schema, 0)) AS ended;

-- schema_exists: whether there is anything of ours at all
SELECT count(*) AS found FROM information_schema.schemata WHERE schema_name = :schema;

-- database_exists: whether the embedded server has been given our database
SELECT count(*) AS found FROM pg_catalog.pg_database WHERE datname = :database;

-- ledger_exists: whether any migration was ever begun here
SELECT count(*) AS found FROM information_schema.tables
 WHERE table_schema = :schema AND table_name = 'schema_migrations';

-- applied_steps: what was done
SELECT version, step FROM schema_migrations ORDER BY version, step;

-- record_step: this step is done
INSERT INTO schema_migrations (version, step) VALUES (:version, :step);

-- record_beginning: the row that every migration locks and that shows whether SKIP LOCKED is honoured
INSERT INTO schema_migrations (version, step) VALUES (0, 'begun') ON CONFLICT DO NOTHING;

-- lock_beginning: holds the first row of the ledger
SELECT step FROM schema_migrations WHERE version = 0 FOR UPDATE;

-- skip_beginning: must not see the first row while somebody holds it
SELECT step FROM schema_migrations WHERE version = 0 FOR UPDATE SKIP LOCKED;

-- wait_briefly: a lock that is not to be had is an error after a second
SET LOCAL lock_timeout = '1s';

-- account_exists: whether this role is there
SELECT count(*) AS found FROM pg_catalog.pg_roles WHERE rolname = :name;

-- texts_that_hand_over: an ALTER for each table and function of ours that does not belong to the owner
SELECT format('ALTER TABLE %s OWNER TO %I', c.oid::regclass, :owner::text) AS text
  FROM pg_catalog.pg_class c
 WHERE c.relnamespace = to_regnamespace(quote_ident(:schema)) AND c.relkind IN ('r', 'p')
   AND c.relowner <> to_regrole(quote_ident(:owner))::oid
UNION ALL
SELECT format('ALTER FUNCTION %s OWNER TO %I', p.oid::regprocedure, :owner::text)
  FROM pg_catalog.pg_proc p
 WHERE p.pronamespace = to_regnamespace(quote_ident(:schema)) AND p.proowner <> to_regrole(quote_ident(:owner))::oid;

-- granted_elsewhere: other installations on this server that use the same role
SELECT 'database ' || d.datname AS place
  FROM pg_catalog.pg_shdepend s JOIN pg_catalog.pg_database d ON d.oid = s.dbid
 WHERE s.refclassid = 'pg_catalog.pg_authid'::regclass AND s.refobjid = to_regrole(quote_ident(:name))
   AND d.datname <> current_database()
UNION
SELECT 'schema ' || n.nspname
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
 WHERE a.grantee = to_regrole(quote_ident(:name)) AND n.nspname <> :schema;
