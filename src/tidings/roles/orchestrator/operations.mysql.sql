-- jobs_under_way: how many each subscription has active, or finished and not taken in yet
SELECT a.subscription_id, COUNT(*) AS jobs, MIN(a.lease_until) AS oldest
  FROM (SELECT subscription_id, lease_until FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
         WHERE status IN ('Pending', 'Leased') AND lease_until >= :active_since
        UNION ALL
        SELECT subscription_id, lease_until FROM webhook_delivery_jobs FORCE INDEX (idx_job_unapplied)
         WHERE unapplied = 1 AND id >= :finished_since) a
 GROUP BY a.subscription_id;

-- finished_jobs: results that their sagas have not taken in yet, with those sagas, locked
SELECT j.id AS job_id, j.saga_id, j.subscription_id, j.status, j.error_code, j.retry_after, j.worker_id, j.lease_until,
       s.status AS saga_status, s.attempt_count, s.event_id, s.correlation_id
  FROM webhook_delivery_jobs j FORCE INDEX (idx_job_unapplied)
  STRAIGHT_JOIN webhook_delivery_sagas s ON s.id = j.saga_id
 WHERE j.unapplied = 1 AND j.id >= :since
 ORDER BY j.id LIMIT :limit FOR UPDATE SKIP LOCKED;

-- retry_sagas: failed; each waits for its own time, which is later than the last one, whatever the clock does
UPDATE webhook_delivery_sagas
   SET status = 'PendingRetry', attempt_count = attempt_count + 1, updated_at = {now},
       final_error_code = {pick :error_codes text for id in :ids},
       next_attempt_at = GREATEST(
           UTC_TIMESTAMP(6)
               + INTERVAL ROUND({pick :delays double precision for id in :ids} * 1000000) MICROSECOND,
           next_attempt_at + INTERVAL 1 MICROSECOND)
 WHERE id {in :ids};

-- due_sagas: the next ones of each lane, as many as it has room for
{each lanes(subscription_id, room, pending_since, retry_since):
    (SELECT subscription_id, id, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
      WHERE status = 'Pending' AND subscription_id = lanes.subscription_id
        AND next_attempt_at BETWEEN lanes.pending_since AND UTC_TIMESTAMP(6)
      ORDER BY next_attempt_at LIMIT lanes.room)
    UNION ALL
    (SELECT subscription_id, id, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
      WHERE status = 'PendingRetry' AND subscription_id = lanes.subscription_id
        AND next_attempt_at BETWEEN lanes.retry_since AND UTC_TIMESTAMP(6)
      ORDER BY next_attempt_at LIMIT lanes.room)
    ORDER BY next_attempt_at LIMIT lanes.room};

-- lock_due: those of them that nobody else is starting
SELECT id, subscription_id, status, attempt_count, next_attempt_at, final_error_code, event_id, correlation_id
  FROM webhook_delivery_sagas FORCE INDEX (PRIMARY)
 WHERE id {in :ids} AND status IN ('Pending', 'PendingRetry') AND next_attempt_at <= {now}
 ORDER BY id FOR UPDATE SKIP LOCKED;
