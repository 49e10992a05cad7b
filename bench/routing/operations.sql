-- publish: new events
INSERT INTO events (event_type, payload) {rows events(event_type text, payload json)};

-- bare_sagas: one for each of these events and each subscription
INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)
SELECT e.id, s.id, e.correlation_id FROM events e CROSS JOIN subscriptions s
 WHERE e.id BETWEEN :first AND :last ORDER BY e.id, s.id;
