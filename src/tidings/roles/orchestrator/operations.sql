-- config_version: changes with every change of configuration; what time it is; and the newest saga
SELECT version, {now} AS now, (SELECT COALESCE(MAX(id), 0) FROM webhook_delivery_sagas) AS newest FROM config_version;

-- subscriptions: all of them, as far as sagas depend on them
SELECT id, active, verified, paused, max_retry_limit, base_delay_seconds FROM subscriptions ORDER BY id;

-- under_way: jobs of each subscription, active or not taken in yet, with those given back; and windows changed lately
SELECT a.subscription_id, COUNT(*) AS jobs,
       SUM(CASE WHEN a.status = 'Pending' AND a.lease_until > {now} THEN 1 ELSE 0 END) AS given_back,
       MIN(a.lease_until) AS oldest, NULL AS window_size, NULL AS failures, NULL AS last_failure_at,
       NULL AS last_error_code, NULL AS updated_at
  FROM (SELECT subscription_id, status, lease_until FROM webhook_delivery_jobs
         WHERE status IN ('Pending', 'Leased') AND lease_until >= :active_since
        UNION ALL
        SELECT subscription_id, status, lease_until FROM webhook_delivery_jobs
         WHERE status IN ('Completed', 'Failed') AND applied_at IS NULL AND id >= :finished_since) a
 GROUP BY a.subscription_id
UNION ALL
SELECT l.subscription_id, 0, 0, NULL, l.window_size, l.failures, l.last_failure_at, l.last_error_code, l.updated_at
  FROM delivery_lanes l WHERE l.updated_at >= :lanes_since;

-- lock_lanes: the windows of these lanes as all know them
SELECT subscription_id, window_size, failures, last_failure_at, last_error_code, updated_at
  FROM delivery_lanes WHERE subscription_id {in :ids} ORDER BY subscription_id FOR UPDATE;

-- add_lanes: windows that nobody knows yet
INSERT INTO delivery_lanes (subscription_id, window_size, failures, last_failure_at, last_error_code)
{rows lanes(subscription_id bigint, window_size int, failures int, last_failure_at timestamptz, last_error_code text)}
    ON CONFLICT (subscription_id) DO NOTHING;

-- change_lanes: what their results have made of windows
UPDATE delivery_lanes
   SET window_size = {pick :sizes int for subscription_id in :ids},
       failures = {pick :failures int for subscription_id in :ids},
       last_failure_at = {pick :failed_at timestamptz for subscription_id in :ids},
       last_error_code = {pick :error_codes text for subscription_id in :ids},
       updated_at = {now}
 WHERE subscription_id {in :ids};

-- finished_jobs: results that their sagas have not taken in yet, with those sagas, locked
-- A saga is found by LATERAL … LIMIT. A bare join, planned while the tables were empty and known to be, reads all sagas
-- for each job: with one row in sight, that looks as good as the index.
SELECT j.id AS job_id, j.saga_id, j.subscription_id, j.status, j.error_code, j.retry_after, j.worker_id, j.lease_until,
       j.duration_ms, s.status AS saga_status, s.attempt_count, s.event_id, s.correlation_id
  FROM (SELECT id, saga_id, subscription_id, status, error_code, retry_after, worker_id, lease_until, duration_ms
          FROM webhook_delivery_jobs
         WHERE status IN ('Completed', 'Failed') AND applied_at IS NULL AND id >= :since
         ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED) j
  CROSS JOIN LATERAL (
      SELECT status, attempt_count, event_id, correlation_id FROM webhook_delivery_sagas
       WHERE id = j.saga_id LIMIT 1 FOR UPDATE SKIP LOCKED) s
 ORDER BY j.id;

-- has_news: whether there is a result to take in, or a saga that is due, by a row of each
SELECT (SELECT id FROM webhook_delivery_jobs
         WHERE status IN ('Completed', 'Failed') AND applied_at IS NULL ORDER BY id LIMIT 1) IS NOT NULL
    OR (SELECT id FROM webhook_delivery_sagas
         WHERE status = 'Pending' AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT 1) IS NOT NULL
    OR (SELECT id FROM webhook_delivery_sagas
         WHERE status = 'PendingRetry' AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT 1) IS NOT NULL
       AS has_news;

-- mark_applied: these results have been taken in
UPDATE webhook_delivery_jobs SET applied_at = {now} WHERE id {in :ids} AND applied_at IS NULL;

-- complete_sagas: delivered
UPDATE webhook_delivery_sagas SET status = 'Completed', attempt_count = attempt_count + 1, updated_at = {now}
 WHERE id {in :ids};

-- retry_sagas: failed; each waits for its own time, which is later than the last one, whatever the clock does
UPDATE webhook_delivery_sagas
   SET status = 'PendingRetry', attempt_count = attempt_count + 1, updated_at = {now},
       final_error_code = {pick :error_codes text for id in :ids},
       next_attempt_at = greatest(
           statement_timestamp() + make_interval(secs => {pick :delays double precision for id in :ids}),
           next_attempt_at + interval '1 microsecond')
 WHERE id {in :ids};

-- bury_sagas: failed for the last time
UPDATE webhook_delivery_sagas
   SET status = 'DeadLettered', attempt_count = attempt_count + 1, updated_at = {now},
       final_error_code = {pick :error_codes text for id in :ids}
 WHERE id {in :ids};

-- last_jobs: the last attempt of each of these sagas
SELECT j.saga_id, j.id AS job_id, j.worker_id, j.lease_until FROM webhook_delivery_jobs j
 WHERE j.saga_id {in :ids}
   AND j.attempt_no = (SELECT s.attempt_count FROM webhook_delivery_sagas s WHERE s.id = j.saga_id);

-- bury_exhausted: their limit was lowered while they waited
UPDATE webhook_delivery_sagas SET status = 'DeadLettered', updated_at = {now} WHERE id {in :ids};

-- write_dead_letters: one for each buried saga, with what the event said
INSERT INTO dead_letters (saga_id, event_id, subscription_id, final_error_code, payload_snapshot)
SELECT s.id, s.event_id, s.subscription_id, s.final_error_code, (SELECT e.payload FROM events e WHERE e.id = s.event_id)
  FROM webhook_delivery_sagas s WHERE s.id {in :ids} ORDER BY s.id;

-- lanes_with_news: whose sagas became due last: behind no backlog, whoever holds one and however long it is
SELECT p.subscription_id
  FROM (SELECT subscription_id, next_attempt_at FROM webhook_delivery_sagas
         WHERE status = 'Pending' AND next_attempt_at <= {now} ORDER BY next_attempt_at DESC LIMIT :limit) p
UNION ALL
SELECT r.subscription_id
  FROM (SELECT subscription_id, next_attempt_at FROM webhook_delivery_sagas
         WHERE status = 'PendingRetry' AND next_attempt_at <= {now} ORDER BY next_attempt_at DESC LIMIT :limit) r;

-- news: due sagas that were made lately, or whose time has come lately
SELECT p.id, p.subscription_id, p.next_attempt_at
  FROM (SELECT id, subscription_id, next_attempt_at FROM webhook_delivery_sagas
         WHERE id > :made_behind AND (status || '') = 'Pending' AND next_attempt_at <= {now}
         ORDER BY id DESC LIMIT :limit) p
UNION ALL
SELECT r.id, r.subscription_id, r.next_attempt_at
  FROM (SELECT id, subscription_id, next_attempt_at FROM webhook_delivery_sagas
         WHERE status = 'PendingRetry' AND next_attempt_at BETWEEN :due_since AND {now}
         ORDER BY next_attempt_at LIMIT :limit) r;

-- due_sagas: the next ones of each lane, as many as it has room for
SELECT lane.subscription_id, s.id
  FROM ({rows lanes(subscription_id bigint, room int, pending_since timestamptz, retry_since timestamptz)})
       AS lane (subscription_id, room, pending_since, retry_since)
  CROSS JOIN LATERAL (
      (SELECT id, next_attempt_at FROM webhook_delivery_sagas
        WHERE status = 'Pending' AND subscription_id = lane.subscription_id
          AND next_attempt_at BETWEEN lane.pending_since AND {now}
        ORDER BY next_attempt_at LIMIT lane.room)
      UNION ALL
      (SELECT id, next_attempt_at FROM webhook_delivery_sagas
        WHERE status = 'PendingRetry' AND subscription_id = lane.subscription_id
          AND next_attempt_at BETWEEN lane.retry_since AND {now}
        ORDER BY next_attempt_at LIMIT lane.room)
      ORDER BY next_attempt_at LIMIT lane.room) s;

-- lock_due: those of them that nobody else is starting
-- Not a bare column, here and in `news`: the planner must come by id, not by the index on status.
SELECT id, subscription_id, status, attempt_count, next_attempt_at, final_error_code, event_id, correlation_id
  FROM webhook_delivery_sagas
 WHERE id {in :ids} AND (status || '') IN ('Pending', 'PendingRetry') AND next_attempt_at <= {now}
 ORDER BY id FOR UPDATE SKIP LOCKED;

-- insert_jobs: one for each saga, for the time at which it was due
INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no)
SELECT id, subscription_id, next_attempt_at, attempt_count + 1 FROM webhook_delivery_sagas
 WHERE id {in :ids} ORDER BY id;

-- start_sagas: their job is under way
UPDATE webhook_delivery_sagas SET status = 'InProgress', updated_at = {now} WHERE id {in :ids};

-- add_totals: what came of attempts; what stood in the same place long ago makes room
INSERT INTO delivery_totals
       (subscription_id, place, slot, began_at, delivered, failed, dead,
        within_100ms, within_300ms, within_1s, within_3s, within_10s, slower)
{rows totals(subscription_id bigint, place int, slot int, began_at timestamptz,
             delivered bigint, failed bigint, dead bigint, within_a bigint, within_b bigint, within_c bigint,
             within_d bigint, within_e bigint, slower bigint)}
    ON CONFLICT (subscription_id, place, slot) DO UPDATE
   SET delivered = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.delivered ELSE 0 END + excluded.delivered,
       failed = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.failed ELSE 0 END + excluded.failed,
       dead = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.dead ELSE 0 END + excluded.dead,
       within_100ms = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.within_100ms ELSE 0 END + excluded.within_100ms,
       within_300ms = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.within_300ms ELSE 0 END + excluded.within_300ms,
       within_1s = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.within_1s ELSE 0 END + excluded.within_1s,
       within_3s = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.within_3s ELSE 0 END + excluded.within_3s,
       within_10s = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.within_10s ELSE 0 END + excluded.within_10s,
       slower = CASE WHEN delivery_totals.began_at = excluded.began_at THEN delivery_totals.slower ELSE 0 END + excluded.slower,
       began_at = excluded.began_at;
