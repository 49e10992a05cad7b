-- under_way: jobs of each subscription, active or not taken in yet, with those given back; and windows changed lately
SELECT a.subscription_id, COUNT(*) AS jobs,
       SUM(CASE WHEN a.status = 'Pending' AND a.lease_until > {now} THEN 1 ELSE 0 END) AS given_back,
       MIN(a.lease_until) AS oldest, NULL AS window_size, NULL AS failures, NULL AS last_failure_at,
       NULL AS last_error_code, NULL AS updated_at
  FROM (SELECT subscription_id, status, lease_until FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
         WHERE status IN ('Pending', 'Leased') AND lease_until >= :active_since
        UNION ALL
        SELECT subscription_id, status, lease_until FROM webhook_delivery_jobs FORCE INDEX (idx_job_unapplied)
         WHERE unapplied = 1 AND id >= :finished_since) a
 GROUP BY a.subscription_id
UNION ALL
SELECT l.subscription_id, 0, 0, NULL, l.window_size, l.failures, l.last_failure_at, l.last_error_code, l.updated_at
  FROM delivery_lanes l FORCE INDEX (idx_lane_updated) WHERE l.updated_at >= :lanes_since;

-- add_lanes: windows that nobody knows yet
INSERT IGNORE INTO delivery_lanes (subscription_id, window_size, failures, last_failure_at, last_error_code)
{rows lanes(subscription_id bigint, window_size int, failures int, last_failure_at timestamptz, last_error_code text)};

-- lanes_with_news: whose sagas became due last: behind no backlog, whoever holds one and however long it is
SELECT p.subscription_id
  FROM (SELECT subscription_id, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = 'Pending' AND next_attempt_at <= {now} ORDER BY next_attempt_at DESC LIMIT :limit) p
UNION ALL
SELECT r.subscription_id
  FROM (SELECT subscription_id, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = 'PendingRetry' AND next_attempt_at <= {now} ORDER BY next_attempt_at DESC LIMIT :limit) r;

-- news: due sagas that were made lately, or whose time has come lately
-- InnoDB sees the end of a range only at a row it may show, and passes everything that is deleted and still kept beyond
-- it. So both ranges end at rows that stay: of the table itself, older ones, and of the index, what is due later.
SELECT p.id, p.subscription_id, p.next_attempt_at
  FROM (SELECT id, subscription_id, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (PRIMARY)
         WHERE id > :made_behind AND status = 'Pending' AND next_attempt_at <= {now}
         ORDER BY id DESC LIMIT :limit) p
UNION ALL
SELECT r.id, r.subscription_id, r.next_attempt_at
  FROM (SELECT id, subscription_id, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = 'PendingRetry' AND next_attempt_at BETWEEN :due_since AND {now}
         ORDER BY next_attempt_at LIMIT :limit) r;

-- finished_jobs: results that their sagas have not taken in yet, with those sagas, locked
SELECT j.id AS job_id, j.saga_id, j.subscription_id, j.status, j.error_code, j.retry_after, j.worker_id, j.lease_until,
       j.duration_ms, s.status AS saga_status, s.attempt_count, s.event_id, s.correlation_id
  FROM webhook_delivery_jobs j FORCE INDEX (idx_job_unapplied)
  STRAIGHT_JOIN webhook_delivery_sagas s ON s.id = j.saga_id
 WHERE j.unapplied = 1 AND j.id >= :since
 ORDER BY j.id LIMIT :limit FOR UPDATE SKIP LOCKED;

-- has_news: whether there is a result to take in, or a saga that is due, by a row of each
SELECT (SELECT id FROM webhook_delivery_jobs FORCE INDEX (idx_job_unapplied)
         WHERE unapplied = 1 ORDER BY id LIMIT 1) IS NOT NULL
    OR (SELECT id FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = 'Pending' AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT 1) IS NOT NULL
    OR (SELECT id FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = 'PendingRetry' AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT 1) IS NOT NULL
       AS has_news;

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

-- add_totals: what came of attempts; what stood in the same place long ago makes room
INSERT INTO delivery_totals
       (subscription_id, place, slot, began_at, delivered, failed, dead,
        within_100ms, within_300ms, within_1s, within_3s, within_10s, slower)
{rows totals(subscription_id bigint, place int, slot int, began_at timestamptz,
             delivered bigint, failed bigint, dead bigint, within_a bigint, within_b bigint, within_c bigint,
             within_d bigint, within_e bigint, slower bigint)}
    ON DUPLICATE KEY UPDATE
       delivered = IF(began_at = VALUES(began_at), delivered, 0) + VALUES(delivered),
       failed = IF(began_at = VALUES(began_at), failed, 0) + VALUES(failed),
       dead = IF(began_at = VALUES(began_at), dead, 0) + VALUES(dead),
       within_100ms = IF(began_at = VALUES(began_at), within_100ms, 0) + VALUES(within_100ms),
       within_300ms = IF(began_at = VALUES(began_at), within_300ms, 0) + VALUES(within_300ms),
       within_1s = IF(began_at = VALUES(began_at), within_1s, 0) + VALUES(within_1s),
       within_3s = IF(began_at = VALUES(began_at), within_3s, 0) + VALUES(within_3s),
       within_10s = IF(began_at = VALUES(began_at), within_10s, 0) + VALUES(within_10s),
       slower = IF(began_at = VALUES(began_at), slower, 0) + VALUES(slower),
       -- The last one: what stands before it is compared with what was there.
       began_at = VALUES(began_at);
