-- publish: new events
INSERT INTO events (event_type, payload) {rows events(event_type text, payload json)};

-- bare_attempts: the decisions about a batch of events, without deciding anything
INSERT INTO route_attempts
       (event_id, worker_name, route_id, route_kind, status, matched, reason, detail, attempt_no, idempotency_key)
SELECT e.id, 'default', 1, 'webhook', 'sent', :matched, '', '', 1, CONCAT('wrk:default:1:', e.id)
  FROM events e WHERE e.id BETWEEN :first AND :last ORDER BY e.id;

-- bare_sagas: their sagas, one for each subscription
INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)
SELECT e.id, s.id, e.correlation_id FROM events e CROSS JOIN subscriptions s
 WHERE e.id BETWEEN :first AND :last ORDER BY e.id, s.id;
