-- installation: the identity from which webhook ids are derived
SELECT installation_id FROM installation;

-- pending_jobs: the next jobs that may be leased, in the order in which they became so
SELECT id, lease_until AS ready_at FROM webhook_delivery_jobs
 WHERE status = 'Pending' AND lease_until BETWEEN :since AND {now}
 ORDER BY lease_until LIMIT :limit FOR UPDATE SKIP LOCKED;

-- has_pending: whether there is any, by one row
SELECT (SELECT id FROM webhook_delivery_jobs
         WHERE status = 'Pending' AND lease_until <= {now} ORDER BY lease_until LIMIT 1) IS NOT NULL AS has_pending;

-- lease_jobs: they belong to this worker for a while, under a token that nobody else has
UPDATE webhook_delivery_jobs
   SET status = 'Leased', lease_until = {now + :lease_seconds}, worker_id = :worker_id, lease_token = :token
 WHERE id {in :ids};

-- leased_jobs: what there is to send; LATERAL … LIMIT, since a bare join that was planned on empty tables reads them whole
SELECT j.id AS job_id, j.saga_id, j.subscription_id, j.attempt_no, j.lease_until, s.event_id, s.correlation_id,
       e.event_type, e.payload
  FROM webhook_delivery_jobs j
  CROSS JOIN LATERAL (
      SELECT event_id, correlation_id FROM webhook_delivery_sagas WHERE id = j.saga_id LIMIT 1) s
  CROSS JOIN LATERAL (SELECT event_type, payload::text AS payload FROM events WHERE id = s.event_id LIMIT 1) e
 WHERE j.id {in :ids} ORDER BY j.id;

-- endpoints: where to, and whether that is still wanted
SELECT id, callback_url, secrets, headers, active, verified, timeout_seconds, max_in_flight
  FROM subscriptions WHERE id {in :ids};

-- report: what came of each job, as long as its lease is still this worker's
-- Not a bare column: the planner must come by id, not by the index on status.
UPDATE webhook_delivery_jobs
   SET status = {pick :statuses text for id in :ids},
       response_status = {pick :response_statuses int for id in :ids},
       error_code = {pick :error_codes text for id in :ids},
       retry_after = {pick :retry_afters int for id in :ids},
       response_excerpt = {pick :excerpts bytea for id in :ids},
       duration_ms = {pick :durations int for id in :ids},
       finished_at = {now}
 WHERE id {in :ids} AND concat(status, '') = 'Leased' AND lease_token = {pick :tokens bigint for id in :ids};

-- still_ours: of these jobs those whose last lease was this worker's
SELECT id FROM webhook_delivery_jobs WHERE id {in :ids} AND lease_token = {pick :tokens bigint for id in :ids};

-- give_back: unsent; anybody may lease them after a while
UPDATE webhook_delivery_jobs
   SET status = 'Pending', lease_until = {now + :delay}, worker_id = NULL, lease_token = :new_token
 WHERE id {in :ids} AND concat(status, '') = 'Leased' AND lease_token = {pick :tokens bigint for id in :ids};
