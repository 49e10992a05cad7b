-- console_sessions: who is signed in to the console; of a session's id only a hash is kept
CREATE TABLE IF NOT EXISTS console_sessions (
    session_hash VARCHAR(64) PRIMARY KEY,
    public_id    VARCHAR(40) NOT NULL,
    created_at   DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    seen_at      DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    INDEX idx_console_session_seen (seen_at)
) {table_options};

-- delivery_totals: what came of attempts: of each subscription by hour, of all together (0) by minute; places are used again
CREATE TABLE IF NOT EXISTS delivery_totals (
    subscription_id BIGINT NOT NULL,
    place           INT NOT NULL,
    slot            INT NOT NULL,
    began_at        DATETIME(6) NOT NULL,
    delivered       BIGINT NOT NULL DEFAULT 0,
    failed          BIGINT NOT NULL DEFAULT 0,
    dead            BIGINT NOT NULL DEFAULT 0,
    within_100ms    BIGINT NOT NULL DEFAULT 0,
    within_300ms    BIGINT NOT NULL DEFAULT 0,
    within_1s       BIGINT NOT NULL DEFAULT 0,
    within_3s       BIGINT NOT NULL DEFAULT 0,
    within_10s      BIGINT NOT NULL DEFAULT 0,
    slower          BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription_id, place, slot),
    INDEX idx_delivery_total_of (subscription_id, began_at),
    INDEX idx_delivery_total_began (began_at)
) {table_options};
