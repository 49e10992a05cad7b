-- wait_for_turn: one migrator at a time; the turn ends with the session
SELECT GET_LOCK(CONCAT('tidings migrate ', :schema), 600) AS got;

-- end_turn: the next migrator may go
SELECT RELEASE_LOCK(CONCAT('tidings migrate ', :schema)) AS ended;

-- record_step: this step is done; it may have been done before and not been recorded
INSERT IGNORE INTO schema_migrations (version, step) VALUES (:version, :step);

-- record_beginning: the row that shows whether SKIP LOCKED is honoured
INSERT IGNORE INTO schema_migrations (version, step) VALUES (0, 'begun');

-- wait_briefly: a lock that is not to be had is an error after a second
SET SESSION innodb_lock_wait_timeout = 1;

-- account_exists: whether this role or account is there
SELECT COUNT(*) AS found FROM mysql.user WHERE user = :name;

-- granted_elsewhere: other installations on this server that use the same role
SELECT DISTINCT CONCAT('database ', db) AS place FROM mysql.tables_priv WHERE user = :name AND db <> :schema;
