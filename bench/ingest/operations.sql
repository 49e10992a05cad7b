-- insert: new events, without a look at whether they are there; yields their ids
INSERT INTO events (event_type, payload, correlation_id)
{rows events(event_type text, payload json, correlation_id text)}
RETURNING id;
