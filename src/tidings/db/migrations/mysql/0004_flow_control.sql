-- delivery_lanes: how many jobs of a subscription may be active, and how it has failed lately
CREATE TABLE IF NOT EXISTS delivery_lanes (
    subscription_id BIGINT NOT NULL PRIMARY KEY,
    window_size     INT NOT NULL,
    failures        INT NOT NULL DEFAULT 0,
    last_failure_at DATETIME(6),
    last_error_code VARCHAR(100),
    updated_at      DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    CONSTRAINT lane_counts CHECK (window_size >= 1 AND failures >= 0)
) {table_options};

-- idx_lane_updated: what has changed since somebody looked last
CREATE INDEX {if_not_exists} idx_lane_updated ON delivery_lanes (updated_at);
