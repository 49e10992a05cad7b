-- worker_presence: which processes are alive, and since when
CREATE TABLE IF NOT EXISTS worker_presence (
    worker_id  VARCHAR(100) PRIMARY KEY,
    process    VARCHAR(40) NOT NULL,
    host       VARCHAR(255) NOT NULL,
    pid        INT NOT NULL,
    version    VARCHAR(40) NOT NULL,
    started_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    seen_at    DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
) {table_options};

-- mass_requeues: requeues of many dead letters, with how far each has come
CREATE TABLE IF NOT EXISTS mass_requeues (
    id            BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    status        ENUM('running', 'done', 'cancelled') NOT NULL DEFAULT 'running',
    {json filter} NOT NULL,
    rate          INT NOT NULL,
    requested_by  VARCHAR(200) NOT NULL,
    total         BIGINT NOT NULL,
    position      BIGINT NOT NULL DEFAULT 0,
    last_id       BIGINT NOT NULL,
    started_count BIGINT NOT NULL DEFAULT 0,
    already_count BIGINT NOT NULL DEFAULT 0,
    refused_count BIGINT NOT NULL DEFAULT 0,
    created_at    DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    updated_at    DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    finished_at   DATETIME(6),
    CONSTRAINT mass_requeue_status_known CHECK (status IN ('running', 'done', 'cancelled')),
    CONSTRAINT mass_requeue_counts CHECK (rate >= 1 AND total >= 0 AND position >= 0 AND last_id >= 0)
) {table_options};

-- idx_dead_subscription: dead letters of one subscription, in order
CREATE INDEX {if_not_exists} idx_dead_subscription ON dead_letters (subscription_id, id);

-- mark_present: a process tells that it is alive; those that died without a word are forgotten after a day
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS mark_present(
    IN its_id VARCHAR(100), IN its_process VARCHAR(40), IN its_host VARCHAR(255), IN its_pid INT,
    IN its_version VARCHAR(40)) SQL SECURITY DEFINER
BEGIN
    DECLARE is_new BOOLEAN DEFAULT NOT EXISTS (SELECT 1 FROM worker_presence WHERE worker_id = its_id);
    IF is_new THEN
        DELETE FROM worker_presence WHERE seen_at < UTC_TIMESTAMP(6) - INTERVAL 1 DAY;
        INSERT IGNORE INTO worker_presence (worker_id, process, host, pid, version)
        VALUES (its_id, its_process, its_host, its_pid, its_version);
    ELSE
        UPDATE worker_presence SET seen_at = UTC_TIMESTAMP(6) WHERE worker_id = its_id;
    END IF;
    SELECT is_new;
END;

-- mark_gone: it ends
CREATE DEFINER = {definer} PROCEDURE IF NOT EXISTS mark_gone(IN its_id VARCHAR(100)) SQL SECURITY DEFINER
DELETE FROM worker_presence WHERE worker_id = its_id;
