-- has_pending: whether there is any, by one row
SELECT (SELECT id FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
         WHERE status = 'Pending' AND lease_until <= {now} ORDER BY lease_until LIMIT 1) IS NOT NULL AS has_pending;

-- pending_jobs: the next jobs that may be leased, in the order in which they became so
SELECT id, lease_until AS ready_at FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
 WHERE status = 'Pending' AND lease_until BETWEEN :since AND {now}
 ORDER BY lease_until LIMIT :limit FOR UPDATE SKIP LOCKED;

-- leased_jobs: what there is to send
SELECT j.id AS job_id, j.saga_id, j.subscription_id, j.attempt_no, j.lease_until, s.event_id, s.correlation_id,
       e.event_type, e.payload
  FROM webhook_delivery_jobs j
  STRAIGHT_JOIN webhook_delivery_sagas s ON s.id = j.saga_id STRAIGHT_JOIN events e ON e.id = s.event_id
 WHERE j.id {in :ids} ORDER BY j.id;
