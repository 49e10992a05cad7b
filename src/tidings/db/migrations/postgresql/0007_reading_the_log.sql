-- idx_event_type_id: the events of one type, newest first, in pages
CREATE INDEX idx_event_type_id ON events (event_type, id);

-- idx_event_correlation: what belongs together
CREATE INDEX idx_event_correlation ON events (correlation_id, id);
