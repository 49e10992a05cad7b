-- events: the append-only log; its numbers are drawn by the database, one by one
CREATE TABLE IF NOT EXISTS events (
    id             BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_domain   VARCHAR(100) NOT NULL DEFAULT 'default',
    event_type     VARCHAR(100) NOT NULL,
    event_stream   VARCHAR(100) NOT NULL DEFAULT '',
    external_id    VARCHAR(255),
    {json payload} NOT NULL,
    correlation_id VARCHAR(128) NOT NULL DEFAULT (UUID()),
    created_at     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT event_domain_given CHECK (event_domain <> ''),
    CONSTRAINT event_type_visible_ascii CHECK (event_type <> '' AND event_type NOT REGEXP '[^!-~]'),
    CONSTRAINT event_external_id_given CHECK (external_id <> ''),
    CONSTRAINT event_correlation_id_visible_ascii CHECK (correlation_id <> '' AND correlation_id NOT REGEXP '[^!-~]'),
    CONSTRAINT event_payload_size CHECK (OCTET_LENGTH(payload) <= 1048576),
    INDEX idx_event_created (created_at),
    INDEX idx_event_type (event_type),
    UNIQUE KEY uniq_event_external (event_domain, external_id)
) {table_options};

-- event_writers: a marker per inserted event, seen uncommitted by routers: this transaction may still bring events
CREATE TABLE IF NOT EXISTS event_writers (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY
) {table_options};

-- subscriptions: who wants which events, and where to
CREATE TABLE IF NOT EXISTS subscriptions (
    id                   BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_domain         VARCHAR(100) NOT NULL DEFAULT 'default',
    event_type           VARCHAR(100) NOT NULL,
    callback_url         VARCHAR(2048) NOT NULL,
    pending_callback_url VARCHAR(2048),
    active               BOOLEAN NOT NULL DEFAULT true,
    verified             BOOLEAN NOT NULL DEFAULT false,
    verification         ENUM('proof', 'echo', 'none') NOT NULL DEFAULT 'proof',
    paused               BOOLEAN NOT NULL DEFAULT false,
    description          VARCHAR(500) NOT NULL DEFAULT '',
    secrets              BLOB,
    headers              BLOB,
    max_retry_limit      INT,
    base_delay_seconds   DOUBLE,
    timeout_seconds      DOUBLE,
    max_in_flight        INT,
    config_version       BIGINT NOT NULL DEFAULT 1,
    created_at           DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    updated_at           DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT subscription_event_type_visible_ascii CHECK (event_type <> '' AND event_type NOT REGEXP '[^!-~]'),
    CONSTRAINT subscription_verification_known CHECK (verification IN ('proof', 'echo', 'none')),
    CONSTRAINT subscription_limits_positive CHECK (
        max_retry_limit >= 1 AND base_delay_seconds > 0 AND timeout_seconds > 0 AND max_in_flight >= 1)
) {table_options};

-- webhook_delivery_sagas: the delivery of one event to one subscription, and the backlog
CREATE TABLE IF NOT EXISTS webhook_delivery_sagas (
    id               BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_id         BIGINT NOT NULL,
    subscription_id  BIGINT NOT NULL,
    generation       INT NOT NULL DEFAULT 0,
    status           ENUM('Pending', 'InProgress', 'PendingRetry', 'Completed', 'DeadLettered') NOT NULL DEFAULT 'Pending',
    attempt_count    INT NOT NULL DEFAULT 0,
    next_attempt_at  DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    final_error_code VARCHAR(100),
    correlation_id   VARCHAR(128) NOT NULL,
    created_at       DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    updated_at       DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT saga_status_known
        CHECK (status IN ('Pending', 'InProgress', 'PendingRetry', 'Completed', 'DeadLettered')),
    CONSTRAINT saga_counts_not_negative CHECK (generation >= 0 AND attempt_count >= 0),
    INDEX idx_saga_event (event_id, subscription_id),
    INDEX idx_saga_status_retry (status, next_attempt_at),
    INDEX idx_saga_status (status),
    INDEX idx_saga_lane (status, subscription_id, next_attempt_at),
    UNIQUE KEY uniq_saga_event_subscription (event_id, subscription_id, generation)
) {table_options};

-- webhook_delivery_jobs: one attempt each; only the window that is being sent, not the backlog
CREATE TABLE IF NOT EXISTS webhook_delivery_jobs (
    id               BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    saga_id          BIGINT NOT NULL,
    subscription_id  BIGINT NOT NULL,
    status           ENUM('Pending', 'Leased', 'Completed', 'Failed') NOT NULL DEFAULT 'Pending',
    lease_until      DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    attempt_at       DATETIME(6) NOT NULL,
    attempt_no       INT NOT NULL,
    worker_id        VARCHAR(100),
    lease_token      BIGINT NOT NULL DEFAULT 0,
    lease_resets     INT NOT NULL DEFAULT 0,
    response_status  INT,
    error_code       VARCHAR(100),
    retry_after      INT,
    response_excerpt BLOB,
    duration_ms      INT,
    created_at       DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    finished_at      DATETIME(6),
    applied_at       DATETIME(6),
    active_saga_id   BIGINT GENERATED ALWAYS AS (IF(status IN ('Pending', 'Leased'), saga_id, NULL)) STORED,
    unapplied        TINYINT GENERATED ALWAYS AS
        (IF(status IN ('Completed', 'Failed') AND applied_at IS NULL, 1, NULL)) STORED,
    CONSTRAINT job_status_known CHECK (status IN ('Pending', 'Leased', 'Completed', 'Failed')),
    CONSTRAINT job_counts_not_negative
        CHECK (attempt_no >= 1 AND lease_resets >= 0 AND (retry_after >= 0) IS NOT false),
    INDEX idx_job_saga (saga_id),
    INDEX idx_job_status_lease (status, lease_until),
    UNIQUE KEY uniq_job_saga_attempt (saga_id, attempt_at),
    UNIQUE KEY uniq_job_active (active_saga_id),
    INDEX idx_job_unapplied (unapplied)
) {table_options};

-- dead_letters: what could not be delivered, with what it said
CREATE TABLE IF NOT EXISTS dead_letters (
    id               BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    saga_id          BIGINT NOT NULL,
    event_id         BIGINT NOT NULL,
    subscription_id  BIGINT NOT NULL,
    final_error_code VARCHAR(100),
    failed_at        DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    {json payload_snapshot} NOT NULL,
    UNIQUE KEY idx_dead_saga (saga_id),
    INDEX idx_dead_event (event_id)
) {table_options};

-- routes: which events go to webhooks, which become tasks
CREATE TABLE IF NOT EXISTS routes (
    id            BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_domain  VARCHAR(100) NOT NULL DEFAULT '*',
    event_type    VARCHAR(100) NOT NULL,
    event_stream  VARCHAR(100) NOT NULL DEFAULT '*',
    target        ENUM('webhook', 'task') NOT NULL,
    task_biz_type VARCHAR(50) NOT NULL DEFAULT '',
    enabled       BOOLEAN NOT NULL DEFAULT true,
    dry_run       BOOLEAN NOT NULL DEFAULT false,
    created_at    DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    updated_at    DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT route_target_known CHECK (target IN ('webhook', 'task')),
    CONSTRAINT route_task_named CHECK ((target = 'task') = (task_biz_type <> '')),
    UNIQUE KEY uniq_route (target, task_biz_type, event_domain, event_type, event_stream)
) {table_options};

-- gates: what may flow at all; a missing gate is a closed one
CREATE TABLE IF NOT EXISTS gates (
    name       VARCHAR(120) PRIMARY KEY,
    is_open    BOOLEAN NOT NULL DEFAULT false,
    reason     VARCHAR(500) NOT NULL DEFAULT '',
    changed_by VARCHAR(200) NOT NULL DEFAULT '',
    changed_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
) {table_options};

-- route_worker_cursors: how far each router has read, and which event it saw last
CREATE TABLE IF NOT EXISTS route_worker_cursors (
    worker_name               VARCHAR(100) PRIMARY KEY,
    event_domain              VARCHAR(100) NOT NULL DEFAULT '*',
    position                  BIGINT NOT NULL DEFAULT 0,
    last_event_id             BIGINT,
    last_event_correlation_id VARCHAR(128),
    last_event_created_at     DATETIME(6),
    runs                      BIGINT NOT NULL DEFAULT 0,
    sent_count                BIGINT NOT NULL DEFAULT 0,
    dry_run_count             BIGINT NOT NULL DEFAULT 0,
    disabled_count            BIGINT NOT NULL DEFAULT 0,
    skipped_count             BIGINT NOT NULL DEFAULT 0,
    failed_count              BIGINT NOT NULL DEFAULT 0,
    {json last_run_summary},
    created_at                DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    updated_at                DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT cursor_position_not_negative CHECK (position >= 0),
    UNIQUE KEY uniq_cursor_domain (event_domain)
) {table_options};

-- route_holes: ranges of event ids that a router has passed and that may still appear
CREATE TABLE IF NOT EXISTS route_holes (
    worker_name VARCHAR(100) NOT NULL,
    lo          BIGINT NOT NULL,
    hi          BIGINT NOT NULL,
    seen_at     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (worker_name, lo),
    CONSTRAINT hole_is_a_range CHECK (lo <= hi)
) {table_options};

-- route_attempts: one row for each decision of a router
CREATE TABLE IF NOT EXISTS route_attempts (
    id              BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_id        BIGINT NOT NULL,
    worker_name     VARCHAR(100) NOT NULL,
    route_id        BIGINT,
    route_kind      VARCHAR(20) NOT NULL DEFAULT '',
    status          ENUM('sent', 'dry_run', 'disabled', 'skipped', 'failed') NOT NULL,
    matched         INT NOT NULL DEFAULT 0,
    reason          VARCHAR(500) NOT NULL DEFAULT '',
    attempt_no      INT NOT NULL DEFAULT 1,
    idempotency_key VARCHAR(200) NOT NULL,
    created_at      DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT route_attempt_status_known
        CHECK (status IN ('sent', 'dry_run', 'disabled', 'skipped', 'failed')),
    UNIQUE KEY uniq_route_attempt (idempotency_key, attempt_no),
    INDEX idx_route_attempt_event (event_id)
) {table_options};

-- route_dead_letters: events that could not be routed, whole
CREATE TABLE IF NOT EXISTS route_dead_letters (
    id              BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_id        BIGINT NOT NULL,
    worker_name     VARCHAR(100) NOT NULL,
    idempotency_key VARCHAR(200) NOT NULL,
    {json event_snapshot} NOT NULL,
    error           TEXT NOT NULL,
    created_at      DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    resolved_at     DATETIME(6),
    resolution      VARCHAR(100),
    UNIQUE KEY uniq_route_dead_letter (idempotency_key),
    INDEX idx_route_dead_letter_event (event_id)
) {table_options};

-- sys_pending_tasks: the generic queue of work for internal handlers
CREATE TABLE IF NOT EXISTS sys_pending_tasks (
    id             BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    biz_type       VARCHAR(50) NOT NULL,
    biz_key        VARCHAR(100) NOT NULL,
    status         TINYINT NOT NULL DEFAULT 0,
    priority       TINYINT NOT NULL DEFAULT 10,
    {json payload},
    result_msg     TEXT,
    retry_count    INT NOT NULL DEFAULT 0,
    max_retries    INT NOT NULL DEFAULT 3,
    next_run_time  DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    version        INT NOT NULL DEFAULT 0,
    worker_id      VARCHAR(100),
    correlation_id VARCHAR(128) NOT NULL DEFAULT (UUID()),
    created_at     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    updated_at     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    claimable      TINYINT GENERATED ALWAYS AS (IF(status IN (0, 3), 1, NULL)) STORED,
    CONSTRAINT task_status_known CHECK (status BETWEEN 0 AND 4),
    CONSTRAINT task_counts_not_negative CHECK (retry_count >= 0 AND max_retries >= 0 AND version >= 0),
    UNIQUE KEY uk_biz (biz_type, biz_key),
    INDEX idx_scan (status, next_run_time, priority),
    INDEX idx_task_claim (claimable, biz_type, priority, next_run_time, id)
) {table_options};

-- sys_pending_tasks_history: finished tasks, moved out of the queue
CREATE TABLE IF NOT EXISTS sys_pending_tasks_history (
    id             BIGINT UNSIGNED NOT NULL PRIMARY KEY,
    biz_type       VARCHAR(50) NOT NULL,
    biz_key        VARCHAR(100) NOT NULL,
    status         TINYINT NOT NULL DEFAULT 0,
    priority       TINYINT NOT NULL DEFAULT 10,
    {json payload},
    result_msg     TEXT,
    retry_count    INT NOT NULL DEFAULT 0,
    max_retries    INT NOT NULL DEFAULT 3,
    next_run_time  DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    version        INT NOT NULL DEFAULT 0,
    worker_id      VARCHAR(100),
    correlation_id VARCHAR(128) NOT NULL DEFAULT (UUID()),
    created_at     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    updated_at     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    archived_at    DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    INDEX idx_task_history_biz (biz_type, biz_key),
    INDEX idx_task_history_archived (archived_at)
) {table_options};

-- api_keys: who may call the HTTP API; of a key only its public id and a hash are kept
CREATE TABLE IF NOT EXISTS api_keys (
    id           BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    public_id    VARCHAR(40) NOT NULL,
    key_hash     BLOB NOT NULL,
    name         VARCHAR(200) NOT NULL DEFAULT '',
    scopes       VARCHAR(200) NOT NULL,
    event_domain VARCHAR(100),
    created_by   VARCHAR(200) NOT NULL DEFAULT '',
    created_at   DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    last_used_at DATETIME(6),
    expires_at   DATETIME(6),
    revoked_at   DATETIME(6),
    UNIQUE KEY uniq_api_key_public_id (public_id)
) {table_options};

-- audit_log: what people and programs changed
CREATE TABLE IF NOT EXISTS audit_log (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    actor      VARCHAR(200) NOT NULL,
    action     VARCHAR(100) NOT NULL,
    subject    VARCHAR(300) NOT NULL,
    {json detail},
    request_id VARCHAR(128),
    created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    INDEX idx_audit_created (created_at),
    INDEX idx_audit_subject (subject)
) {table_options};

-- config_version: one row; its number changes with every change of configuration
CREATE TABLE IF NOT EXISTS config_version (
    id         TINYINT PRIMARY KEY DEFAULT 1,
    version    BIGINT NOT NULL DEFAULT 1,
    updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT config_version_is_one_row CHECK (id = 1)
) {table_options};

-- first_config_version: the one row
INSERT IGNORE INTO config_version () VALUES ();

-- installation: one row; the identity from which webhook ids are derived
CREATE TABLE IF NOT EXISTS installation (
    id              TINYINT PRIMARY KEY DEFAULT 1,
    installation_id VARCHAR(36) NOT NULL DEFAULT (UUID()),
    created_at      DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT installation_is_one_row CHECK (id = 1)
) {table_options};

-- first_installation: the one row
INSERT IGNORE INTO installation () VALUES ();

-- truncate_guard: always empty; its foreign keys refuse TRUNCATE and DROP, for which MySQL fires no trigger
CREATE TABLE IF NOT EXISTS truncate_guard (
    id                   BIGINT NOT NULL PRIMARY KEY,
    event_id             BIGINT,
    saga_id              BIGINT,
    job_id               BIGINT,
    dead_letter_id       BIGINT,
    route_attempt_id     BIGINT,
    route_dead_letter_id BIGINT,
    audit_id             BIGINT,
    CONSTRAINT truncate_guard_is_empty CHECK (id <> id),
    CONSTRAINT truncate_guard_events FOREIGN KEY (event_id) REFERENCES events (id),
    CONSTRAINT truncate_guard_sagas FOREIGN KEY (saga_id) REFERENCES webhook_delivery_sagas (id),
    CONSTRAINT truncate_guard_jobs FOREIGN KEY (job_id) REFERENCES webhook_delivery_jobs (id),
    CONSTRAINT truncate_guard_dead_letters FOREIGN KEY (dead_letter_id) REFERENCES dead_letters (id),
    CONSTRAINT truncate_guard_route_attempts FOREIGN KEY (route_attempt_id) REFERENCES route_attempts (id),
    CONSTRAINT truncate_guard_route_dead_letters
        FOREIGN KEY (route_dead_letter_id) REFERENCES route_dead_letters (id),
    CONSTRAINT truncate_guard_audit_log FOREIGN KEY (audit_id) REFERENCES audit_log (id)
) {table_options};

-- event_written: marks the transaction as one that may still bring events, before any id is drawn
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS event_written BEFORE INSERT ON events FOR EACH ROW
BEGIN
    IF NEW.id <> 0 THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'events.id is assigned by the database';
    END IF;
    INSERT INTO event_writers VALUES (NULL);
END;

-- event_numbered: refuses the id 0 that NO_AUTO_VALUE_ON_ZERO lets through
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS event_numbered AFTER INSERT ON events FOR EACH ROW
IF NEW.id <= 0 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'events.id is assigned by the database';
END IF;

-- event_changed: events never change
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS event_changed BEFORE UPDATE ON events FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'events never change';

-- event_removed: events never go, unless retention removes a finished story
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS event_removed BEFORE DELETE ON events FOR EACH ROW
-- As bytes, and up to the last @: other letters of the same sort, or an @ in a name, make another login.
IF CAST(USER() AS BINARY) <> CONCAT('{login_retention}@', SUBSTRING_INDEX(USER(), '@', -1))
   OR EXISTS (SELECT 1 FROM webhook_delivery_sagas WHERE event_id = OLD.id)
   OR EXISTS (SELECT 1 FROM route_dead_letters WHERE event_id = OLD.id AND resolved_at IS NULL)
   OR NOT EXISTS (SELECT 1 FROM route_attempts WHERE event_id = OLD.id) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'events are never deleted';
END IF;

-- saga_terminal: a saga that has ended never changes
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS saga_terminal BEFORE UPDATE ON webhook_delivery_sagas FOR EACH ROW
IF OLD.status IN ('Completed', 'DeadLettered') THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a saga that has ended never changes';
END IF;

-- saga_removed: sagas are never deleted, unless retention removes a finished story
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS saga_removed BEFORE DELETE ON webhook_delivery_sagas FOR EACH ROW
IF CAST(USER() AS BINARY) <> CONCAT('{login_retention}@', SUBSTRING_INDEX(USER(), '@', -1))
   OR OLD.status NOT IN ('Completed', 'DeadLettered') THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'sagas are never deleted';
END IF;

-- job_saga_open: no job can be created for a saga that has ended
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS job_saga_open BEFORE INSERT ON webhook_delivery_jobs FOR EACH ROW
IF EXISTS (SELECT 1 FROM webhook_delivery_sagas
            WHERE id = NEW.saga_id AND status IN ('Completed', 'DeadLettered')) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no job can be created for a saga that has ended';
END IF;

-- job_finished: a finished job changes only applied_at, and that once
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS job_finished AFTER UPDATE ON webhook_delivery_jobs FOR EACH ROW
-- A finished job is not the active one of its saga. In one condition with this, the comparison would cost every update.
IF OLD.active_saga_id IS NULL THEN
    IF OLD.applied_at IS NOT NULL OR NEW.applied_at IS NULL
       OR NOT (OLD.id, OLD.saga_id, OLD.subscription_id, OLD.status, OLD.lease_until, OLD.attempt_at, OLD.attempt_no,
               OLD.worker_id, OLD.lease_token, OLD.lease_resets, OLD.response_status, OLD.error_code, OLD.retry_after,
               OLD.response_excerpt, OLD.duration_ms, OLD.created_at, OLD.finished_at)
              <=>
              (NEW.id, NEW.saga_id, NEW.subscription_id, NEW.status, NEW.lease_until, NEW.attempt_at, NEW.attempt_no,
               NEW.worker_id, NEW.lease_token, NEW.lease_resets, NEW.response_status, NEW.error_code, NEW.retry_after,
               NEW.response_excerpt, NEW.duration_ms, NEW.created_at, NEW.finished_at) THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a finished job changes only applied_at, and that once';
    END IF;
END IF;

-- job_removed: jobs are never deleted, unless retention removes a finished story
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS job_removed BEFORE DELETE ON webhook_delivery_jobs FOR EACH ROW
IF CAST(USER() AS BINARY) <> CONCAT('{login_retention}@', SUBSTRING_INDEX(USER(), '@', -1))
   OR OLD.applied_at IS NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'jobs are never deleted';
END IF;

-- dead_letter_changed: dead letters never change
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS dead_letter_changed BEFORE UPDATE ON dead_letters FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'dead letters never change';

-- dead_letter_removed: dead letters are never deleted, unless retention removes a finished story
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS dead_letter_removed BEFORE DELETE ON dead_letters FOR EACH ROW
IF CAST(USER() AS BINARY) <> CONCAT('{login_retention}@', SUBSTRING_INDEX(USER(), '@', -1)) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'dead letters are never deleted';
END IF;

-- route_attempt_changed: routing decisions never change
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS route_attempt_changed BEFORE UPDATE ON route_attempts FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'routing decisions never change';

-- route_attempt_removed: routing decisions are never deleted, unless retention removes a finished story
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS route_attempt_removed BEFORE DELETE ON route_attempts FOR EACH ROW
IF CAST(USER() AS BINARY) <> CONCAT('{login_retention}@', SUBSTRING_INDEX(USER(), '@', -1)) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'routing decisions are never deleted';
END IF;

-- route_dead_letter_changed: of a routing dead letter only its resolution changes
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS route_dead_letter_changed BEFORE UPDATE ON route_dead_letters FOR EACH ROW
IF NOT (
        OLD.id <=> NEW.id AND OLD.event_id <=> NEW.event_id AND OLD.worker_name <=> NEW.worker_name AND
        OLD.idempotency_key <=> NEW.idempotency_key AND OLD.error <=> NEW.error AND OLD.created_at <=> NEW.created_at
        -- The collation of JSON does not see blanks at the end.
        AND CAST(OLD.event_snapshot AS BINARY) <=> CAST(NEW.event_snapshot AS BINARY)) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'of a routing dead letter only its resolution changes';
END IF;

-- route_dead_letter_removed: they are never deleted, unless retention removes a finished story
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS route_dead_letter_removed BEFORE DELETE ON route_dead_letters FOR EACH ROW
IF CAST(USER() AS BINARY) <> CONCAT('{login_retention}@', SUBSTRING_INDEX(USER(), '@', -1))
   OR OLD.resolved_at IS NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'routing dead letters are never deleted';
END IF;

-- task_terminal: a task that succeeded never changes, one that failed for good only starts anew
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS task_terminal BEFORE UPDATE ON sys_pending_tasks FOR EACH ROW
IF OLD.status = 2 OR (OLD.status = 4 AND NEW.status <> 0) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a task that has ended never changes';
END IF;

-- audit_changed: the audit log never changes
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS audit_changed BEFORE UPDATE ON audit_log FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the audit log never changes';

-- audit_removed: the audit log is never deleted
CREATE DEFINER = {definer} TRIGGER IF NOT EXISTS audit_removed BEFORE DELETE ON audit_log FOR EACH ROW
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the audit log is never deleted';

-- start_next_generation: a new saga for each ended one given as a JSON list, once, however often it is asked
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS start_next_generation(IN saga_ids LONGTEXT, IN ended_as VARCHAR(20))
    SQL SECURITY DEFINER
BEGIN
    DROP TEMPORARY TABLE IF EXISTS next_generation;
    CREATE TEMPORARY TABLE next_generation (
        old_saga_id BIGINT PRIMARY KEY, saga_id BIGINT, generation INT, outcome VARCHAR(30)) ENGINE = InnoDB;
    -- Two callers take turns at the old saga, so that the second one finds the first one's new saga. STRAIGHT_JOIN:
    -- in another order all sagas would be read, with a wait for each that somebody else has locked.
    INSERT INTO next_generation (old_saga_id, generation)
    SELECT w.id, w.generation + 1
      FROM (SELECT DISTINCT a.id FROM JSON_TABLE(saga_ids, '$[*]' COLUMNS (id BIGINT PATH '$')) a) asked
      STRAIGHT_JOIN webhook_delivery_sagas w ON w.id = asked.id
     ORDER BY w.id FOR UPDATE;
    UPDATE next_generation n
      STRAIGHT_JOIN webhook_delivery_sagas old ON old.id = n.old_saga_id
      STRAIGHT_JOIN subscriptions s ON s.id = old.subscription_id
      LEFT JOIN webhook_delivery_sagas next ON next.event_id = old.event_id
           AND next.subscription_id = old.subscription_id AND next.generation = n.generation
       SET n.saga_id = next.id,
           n.outcome = CASE WHEN old.status <> ended_as THEN 'not_ended_so'
                            WHEN next.id IS NOT NULL THEN 'already_started'
                            WHEN NOT s.active THEN 'subscription_inactive'
                            WHEN NOT s.verified THEN 'subscription_unverified'
                            ELSE 'started' END;
    INSERT INTO webhook_delivery_sagas (event_id, subscription_id, generation, correlation_id)
    SELECT old.event_id, old.subscription_id, n.generation, old.correlation_id
      FROM next_generation n STRAIGHT_JOIN webhook_delivery_sagas old ON old.id = n.old_saga_id
     WHERE n.outcome = 'started' ORDER BY old.id;
    UPDATE next_generation n
      STRAIGHT_JOIN webhook_delivery_sagas old ON old.id = n.old_saga_id
      STRAIGHT_JOIN webhook_delivery_sagas made ON made.event_id = old.event_id
           AND made.subscription_id = old.subscription_id AND made.generation = n.generation
       SET n.saga_id = made.id
     WHERE n.outcome = 'started';
END;

-- requeue_dead_letters: a new saga for each dead letter given as a JSON list
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS requeue_dead_letters(IN ids LONGTEXT) SQL SECURITY DEFINER
BEGIN
    -- JSON_TABLE would read 4 in 4.5 and in "4; DROP".
    IF ids NOT REGEXP '^\\[[-0-9, ]*\\]$' THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the ids must be a JSON list of whole numbers';
    END IF;
    CALL start_next_generation(
        (SELECT COALESCE(JSON_ARRAYAGG(d.saga_id), '[]')
           FROM JSON_TABLE(ids, '$[*]' COLUMNS (id BIGINT PATH '$')) a JOIN dead_letters d ON d.id = a.id),
        'DeadLettered');
    SELECT a.id AS dead_letter_id, n.saga_id, n.generation, COALESCE(n.outcome, 'not_found') AS outcome
      FROM JSON_TABLE(ids, '$[*]' COLUMNS (id BIGINT PATH '$')) a
      LEFT JOIN dead_letters d ON d.id = a.id
      LEFT JOIN next_generation n ON n.old_saga_id = d.saga_id
     ORDER BY a.id;
    DROP TEMPORARY TABLE next_generation;
END;

-- resend_sagas: a new saga for each completed one given as a JSON list
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS resend_sagas(IN ids LONGTEXT) SQL SECURITY DEFINER
BEGIN
    -- JSON_TABLE would read 4 in 4.5 and in "4; DROP".
    IF ids NOT REGEXP '^\\[[-0-9, ]*\\]$' THEN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the ids must be a JSON list of whole numbers';
    END IF;
    CALL start_next_generation(ids, 'Completed');
    SELECT a.id AS old_saga_id, n.saga_id, n.generation, COALESCE(n.outcome, 'not_found') AS outcome
      FROM JSON_TABLE(ids, '$[*]' COLUMNS (id BIGINT PATH '$')) a
      LEFT JOIN next_generation n ON n.old_saga_id = a.id
     ORDER BY a.id;
    DROP TEMPORARY TABLE next_generation;
END;
