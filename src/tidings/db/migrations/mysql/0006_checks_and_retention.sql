-- endpoint_checks: calls to one endpoint that a person asked for; of an answer only the verdict is kept
CREATE TABLE IF NOT EXISTS endpoint_checks (
    id              BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    subscription_id BIGINT NOT NULL,
    kind            ENUM('verification', 'test') NOT NULL,
    url             VARCHAR(2048) NOT NULL,
    host            VARCHAR(253) NOT NULL,
    challenge       VARCHAR(64) NOT NULL,
    created_at      DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    expires_at      DATETIME(6) NOT NULL,
    outcome         ENUM('passed', 'failed', 'timeout', 'blocked', 'outdated'),
    error_code      VARCHAR(100),
    duration_ms     INT,
    finished_at     DATETIME(6),
    CONSTRAINT endpoint_check_kind_known CHECK (kind IN ('verification', 'test')),
    CONSTRAINT endpoint_check_outcome_known
        CHECK (outcome IN ('passed', 'failed', 'timeout', 'blocked', 'outdated')),
    INDEX idx_endpoint_check_subscription (subscription_id, created_at),
    INDEX idx_endpoint_check_host (host, created_at)
) {table_options};

-- retention_walks: how far retention has looked, and since when; who holds the row walks
CREATE TABLE IF NOT EXISTS retention_walks (
    name     VARCHAR(20) PRIMARY KEY,
    at_time  DATETIME(6),
    at_id    BIGINT NOT NULL DEFAULT 0,
    began_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
) {table_options};

-- retention_totals: what retention has removed, by the day on which it had begun
CREATE TABLE IF NOT EXISTS retention_totals (
    day                VARCHAR(10) PRIMARY KEY,
    events             BIGINT NOT NULL DEFAULT 0,
    sent               BIGINT NOT NULL DEFAULT 0,
    dry_run            BIGINT NOT NULL DEFAULT 0,
    failed             BIGINT NOT NULL DEFAULT 0,
    disabled           BIGINT NOT NULL DEFAULT 0,
    skipped            BIGINT NOT NULL DEFAULT 0,
    attempts           BIGINT NOT NULL DEFAULT 0,
    wanted_deliveries  BIGINT NOT NULL DEFAULT 0,
    wanted_tasks       BIGINT NOT NULL DEFAULT 0,
    sagas              BIGINT NOT NULL DEFAULT 0,
    delivered          BIGINT NOT NULL DEFAULT 0,
    dead               BIGINT NOT NULL DEFAULT 0,
    jobs               BIGINT NOT NULL DEFAULT 0,
    dead_letters       BIGINT NOT NULL DEFAULT 0,
    route_dead_letters BIGINT NOT NULL DEFAULT 0,
    tasks              BIGINT NOT NULL DEFAULT 0,
    updated_at         DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
) {table_options};
