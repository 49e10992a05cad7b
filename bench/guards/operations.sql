-- thread: the server's thread that serves this session; on PostgreSQL a process of its own
SELECT pg_backend_pid() AS id;

-- insert_events: a batch of new events; yields their ids
INSERT INTO events (event_type, payload, external_id, correlation_id)
{rows events(event_type text, payload json, external_id text, correlation_id text)}
RETURNING id;

-- insert_sagas: one saga for each event and subscription
INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)
{rows sagas(event_id bigint, subscription_id bigint, correlation_id text)}
ON CONFLICT DO NOTHING;

-- lock_pending_sagas: the sagas to start
SELECT id, subscription_id, next_attempt_at FROM webhook_delivery_sagas
 WHERE status = 'Pending' AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT :batch
   FOR UPDATE SKIP LOCKED;

-- insert_jobs: one job for each started saga
INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no)
{rows jobs(saga_id bigint, subscription_id bigint, attempt_at timestamptz, attempt_no int)};

-- lock_pending_jobs: the jobs to lease
SELECT id FROM webhook_delivery_jobs
 WHERE status = 'Pending' AND lease_until <= {now} ORDER BY lease_until LIMIT :batch
   FOR UPDATE SKIP LOCKED;

-- lock_finished_jobs: the results to take in
SELECT id, saga_id FROM webhook_delivery_jobs
 WHERE id {in :ids} AND status = 'Completed' AND applied_at IS NULL FOR UPDATE SKIP LOCKED;
