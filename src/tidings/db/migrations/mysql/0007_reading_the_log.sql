-- idx_event_correlation: what belongs together
CREATE INDEX {if_not_exists} idx_event_correlation ON events (correlation_id);
