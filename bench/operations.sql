-- attempts: that these events were routed, without deciding anything
INSERT INTO route_attempts
       (event_id, worker_name, route_id, route_kind, status, matched, reason, detail, attempt_no, idempotency_key)
SELECT e.id, 'default', 1, 'webhook', 'sent', :matched, '', '', 1, CONCAT('wrk:default:1:', e.id)
  FROM events e WHERE e.id BETWEEN :first AND :last ORDER BY e.id;

-- start_sagas: these sagas are under way
UPDATE webhook_delivery_sagas SET status = 'InProgress', updated_at = {now} WHERE id {in :ids};

-- lease_jobs: these jobs are somebody's
UPDATE webhook_delivery_jobs
   SET status = 'Leased', lease_until = {now + :seconds}, worker_id = :worker, lease_token = :token
 WHERE id {in :ids};

-- report_jobs: all of them went well
UPDATE webhook_delivery_jobs
   SET status = 'Completed', response_status = 200, response_excerpt = :excerpt, duration_ms = :duration,
       finished_at = {now}
 WHERE id {in :ids} AND lease_token = :token;

-- apply_jobs: their results were taken in
UPDATE webhook_delivery_jobs SET applied_at = {now} WHERE id {in :ids};

-- complete_sagas: these sagas have ended well
UPDATE webhook_delivery_sagas SET status = 'Completed', attempt_count = attempt_count + 1, updated_at = {now}
 WHERE id {in :ids};
