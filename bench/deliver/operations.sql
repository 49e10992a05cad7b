-- attempts: that these events were routed, without deciding anything
INSERT INTO route_attempts
       (event_id, worker_name, route_id, route_kind, status, matched, reason, detail, attempt_no, idempotency_key)
SELECT e.id, 'default', 1, 'webhook', 'sent', :matched, '', '', 1, CONCAT('wrk:default:1:', e.id)
  FROM events e WHERE e.id BETWEEN :first AND :last ORDER BY e.id;

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

-- start: these sagas are under way
UPDATE webhook_delivery_sagas SET status = 'InProgress', updated_at = {now} WHERE id {in :ids};

-- lease: these jobs are somebody's
UPDATE webhook_delivery_jobs
   SET status = 'Leased', lease_until = {now + :seconds}, worker_id = :worker, lease_token = :token
 WHERE id {in :ids};

-- report: all of them went well
UPDATE webhook_delivery_jobs
   SET status = 'Completed', response_status = 200, response_excerpt = :excerpt, duration_ms = :duration,
       finished_at = {now}
 WHERE id {in :ids} AND lease_token = :token;

-- apply: their results were taken in
UPDATE webhook_delivery_jobs SET applied_at = {now} WHERE id {in :ids};

-- complete: these sagas have ended well
UPDATE webhook_delivery_sagas SET status = 'Completed', attempt_count = attempt_count + 1, updated_at = {now}
 WHERE id {in :ids};
