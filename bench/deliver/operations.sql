-- sagas: one for each of these events and each subscription; yields their ids
INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)
SELECT e.id, s.id, e.correlation_id FROM events e CROSS JOIN subscriptions s
 WHERE e.id BETWEEN :first AND :last ORDER BY e.id, s.id
RETURNING id;

-- jobs: one for each of these sagas; yields their ids
INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no)
SELECT id, subscription_id, next_attempt_at, attempt_count + 1 FROM webhook_delivery_sagas
 WHERE id {in :ids} ORDER BY id
RETURNING id;
