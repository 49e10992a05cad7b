-- delivery_lanes: how many jobs of a subscription may be active, and how it has failed lately
CREATE TABLE delivery_lanes (
    subscription_id bigint PRIMARY KEY,
    window_size     integer NOT NULL,
    failures        integer NOT NULL DEFAULT 0,
    last_failure_at timestamptz,
    last_error_code varchar(100) COLLATE "C",
    updated_at      timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT lane_counts CHECK (window_size >= 1 AND failures >= 0)
);

-- idx_lane_updated: what has changed since somebody looked last
CREATE INDEX idx_lane_updated ON delivery_lanes (updated_at);
