-- server_clock: what time it is there
SELECT UTC_TIMESTAMP(6) AS now;

-- isolation: how this session's transactions see each other
SELECT LOWER(REPLACE(@@transaction_isolation, '-', ' ')) AS level;

-- durability: the settings that decide whether a commit survives a crash, and what is right
SELECT 'innodb_flush_log_at_trx_commit' AS name, CAST(@@innodb_flush_log_at_trx_commit AS CHAR) AS value, '1' AS wanted
UNION ALL
SELECT 'innodb_doublewrite', CAST(@@innodb_doublewrite AS CHAR), '1|ON'
UNION ALL
SELECT 'sync_binlog', IF(@@log_bin, CAST(@@sync_binlog AS CHAR), 'no binlog'), '1|no binlog';

-- id_generation: what the proof that no event is skipped stands on
SELECT 'role of the server' AS name, IF(@@read_only, 'replica', 'primary') AS value, 'primary' AS wanted
UNION ALL
SELECT 'binlog_format', IF(@@log_bin, @@binlog_format, 'no binlog'), 'ROW|MIXED|no binlog';

-- open_writers: nobody: a plain read does not show who has not committed yet
SELECT NULL AS pid, NULL AS application, NULL AS open_seconds FROM event_writers WHERE FALSE;

-- events_of_type_before: the events of one type
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events FORCE INDEX (idx_event_type)
 WHERE event_type = :event_type AND id < :before ORDER BY id DESC LIMIT :limit;

-- event_of_type_floor: how far down so many events of one type reach
SELECT MIN(w.id) AS floor, COUNT(*) AS seen
  FROM (SELECT id FROM events FORCE INDEX (idx_event_type)
         WHERE event_type = :event_type AND id < :before ORDER BY id DESC LIMIT :window) w;

-- events_of_type_and_domain: the events of one type and one domain in a range of ids
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events FORCE INDEX (idx_event_type)
 WHERE event_type = :event_type AND id < :before AND id >= :floor AND event_domain = :event_domain
 ORDER BY id DESC LIMIT :limit;

-- events_of_type_and_time: the events of one type in a range of ids and a span of time
SELECT id, event_domain, event_type, event_stream, external_id, correlation_id, created_at
  FROM events FORCE INDEX (idx_event_type)
 WHERE event_type = :event_type AND id < :before AND id >= :floor
   AND created_at >= :since AND created_at <= :until AND (event_domain = :event_domain OR :event_domain = '')
 ORDER BY id DESC LIMIT :limit;

-- delivered_among: for which of these events one subscription has a delivery
SELECT event_id FROM webhook_delivery_sagas FORCE INDEX (uniq_saga_event_subscription)
 WHERE event_id {in :ids} AND subscription_id = :subscription_id AND generation = 0;

-- attempts_of_subscription: its attempts among the newest ones of all
SELECT j.id, j.saga_id, s.event_id, j.attempt_no, j.status, j.worker_id, j.response_status, j.error_code, j.duration_ms,
       j.created_at, j.finished_at
  FROM (SELECT id, saga_id, attempt_no, status, worker_id, response_status, error_code, duration_ms, created_at,
               finished_at
          FROM webhook_delivery_jobs FORCE INDEX (PRIMARY) WHERE id >= :floor AND subscription_id = :subscription_id
         ORDER BY id DESC LIMIT :limit) j
  LEFT JOIN webhook_delivery_sagas s ON s.id = j.saga_id
 ORDER BY j.id DESC;

-- first_of_lane: the first delivery of each open status that one subscription has
SELECT p.status, p.next_attempt_at
  FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
         WHERE status = 'Pending' AND subscription_id = :subscription_id ORDER BY next_attempt_at LIMIT 1) p
UNION ALL
SELECT r.status, r.next_attempt_at
  FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
         WHERE status = 'PendingRetry' AND subscription_id = :subscription_id ORDER BY next_attempt_at LIMIT 1) r
UNION ALL
SELECT u.status, u.next_attempt_at
  FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
         WHERE status = 'InProgress' AND subscription_id = :subscription_id ORDER BY next_attempt_at LIMIT 1) u;

-- backlogs: how many deliveries of each of these subscriptions are open, as far as is counted, and since when
{each lanes(subscription_id, most):
    SELECT lanes.subscription_id AS subscription_id, 'Pending' AS status, COUNT(*) AS sagas,
           MIN(p.next_attempt_at) AS oldest, UTC_TIMESTAMP(6) AS now
      FROM (SELECT next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
             WHERE status = 'Pending' AND subscription_id = lanes.subscription_id
             ORDER BY next_attempt_at LIMIT lanes.most) p
    UNION ALL
    SELECT lanes.subscription_id, 'PendingRetry', COUNT(*), MIN(r.next_attempt_at), UTC_TIMESTAMP(6)
      FROM (SELECT next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
             WHERE status = 'PendingRetry' AND subscription_id = lanes.subscription_id
             ORDER BY next_attempt_at LIMIT lanes.most) r
    UNION ALL
    SELECT lanes.subscription_id, 'InProgress', COUNT(*), MIN(u.next_attempt_at), UTC_TIMESTAMP(6)
      FROM (SELECT next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_lane)
             WHERE status = 'InProgress' AND subscription_id = lanes.subscription_id
             ORDER BY next_attempt_at LIMIT lanes.most) u};

-- sagas_of_events: the deliveries of each of these events, at most so many of one
{each asked(event_id, most):
    SELECT event_id, subscription_id, generation, status
      FROM webhook_delivery_sagas FORCE INDEX (uniq_saga_event_subscription)
     WHERE event_id = asked.event_id ORDER BY subscription_id, generation LIMIT asked.most};

-- dead_letters_of_subscription_before: those of one subscription
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, n.id AS requeued_as,
       n.status AS requeued_status
  FROM (SELECT id, saga_id, event_id, subscription_id, final_error_code, failed_at
          FROM dead_letters FORCE INDEX (idx_dead_subscription)
         WHERE subscription_id = :subscription_id AND id < :before ORDER BY id DESC LIMIT :limit) d
  LEFT JOIN webhook_delivery_sagas o ON o.id = d.saga_id
  LEFT JOIN webhook_delivery_sagas n ON n.event_id = d.event_id AND n.subscription_id = d.subscription_id
                                    AND n.generation = o.generation + 1
 ORDER BY d.id DESC;

-- dead_letter_of_subscription_floor: how far down so many dead letters of one subscription reach, below an id
SELECT MIN(w.id) AS floor, COUNT(*) AS seen
  FROM (SELECT id FROM dead_letters FORCE INDEX (idx_dead_subscription)
         WHERE subscription_id = :subscription_id AND id < :before ORDER BY id DESC LIMIT :window) w;

-- dead_letters_of_subscription_between: dead letters of one subscription in a range of ids that fit
SELECT d.id, d.saga_id, d.event_id, d.subscription_id, d.final_error_code, d.failed_at, n.id AS requeued_as,
       n.status AS requeued_status
  FROM (SELECT x.id, x.saga_id, x.event_id, x.subscription_id, x.final_error_code, x.failed_at
          FROM dead_letters x FORCE INDEX (idx_dead_subscription)
         WHERE x.subscription_id = :subscription_id AND x.id < :before AND x.id >= :floor
           AND (x.final_error_code = :error_code OR :error_code = '')
           AND x.failed_at >= :since AND x.failed_at <= :until
           AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = x.event_id) = :event_type)
           AND (:event_domain = '' OR (SELECT e.event_domain FROM events e WHERE e.id = x.event_id) = :event_domain)
         ORDER BY x.id DESC LIMIT :limit) d
  LEFT JOIN webhook_delivery_sagas o ON o.id = d.saga_id
  LEFT JOIN webhook_delivery_sagas n ON n.event_id = d.event_id AND n.subscription_id = d.subscription_id
                                    AND n.generation = o.generation + 1
 ORDER BY d.id DESC;

-- count_letters_of_subscription_between: the same of one subscription
SELECT x.subscription_id, s.active, s.verified, COUNT(*) AS letters
  FROM dead_letters x FORCE INDEX (idx_dead_subscription) LEFT JOIN subscriptions s ON s.id = x.subscription_id
 WHERE x.subscription_id = :subscription_id AND x.id >= :floor
   AND (x.final_error_code = :error_code OR :error_code = '')
   AND x.failed_at >= :since AND x.failed_at <= :until
   AND (:event_type = '' OR (SELECT e.event_type FROM events e WHERE e.id = x.event_id) = :event_type)
 GROUP BY x.subscription_id, s.active, s.verified;

-- tasks_lately: of so many tasks that run or have ended in one way, the last to change first, those of one type
SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.retry_count, t.max_retries, t.next_run_time, t.version,
       t.worker_id, t.correlation_id, SUBSTR(t.result_msg, 1, 200) AS result_msg, t.created_at, t.updated_at
  FROM (SELECT k.id, k.updated_at
          FROM (SELECT id, biz_type, updated_at FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
                 WHERE status = :status
                   AND updated_at <= :until AND (updated_at < :until OR id < :before)
                 ORDER BY updated_at DESC, id DESC LIMIT :most) k
         WHERE k.biz_type = :biz_type OR :biz_type = ''
         ORDER BY k.updated_at DESC, k.id DESC LIMIT :limit) w
  STRAIGHT_JOIN sys_pending_tasks t ON t.id = w.id
 ORDER BY w.updated_at DESC, w.id DESC;

-- tasks_lately_end: the last of so many tasks, and how many there were
SELECT w.updated_at, w.id, COUNT(*) OVER () AS seen
  FROM (SELECT updated_at, id FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
         WHERE status = :status
           AND updated_at <= :until AND (updated_at < :until OR id < :before)
         ORDER BY updated_at DESC, id DESC LIMIT :most) w
 ORDER BY w.updated_at, w.id LIMIT 1;

-- waiting_of_type: of so many tasks of one type that wait, in the order in which they are claimed, those of one status
SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.retry_count, t.max_retries, t.next_run_time, t.version,
       t.worker_id, t.correlation_id, SUBSTR(t.result_msg, 1, 200) AS result_msg, t.created_at, t.updated_at
  FROM (SELECT k.id, k.priority, k.next_run_time
          FROM (SELECT u.id, u.status, u.priority, u.next_run_time
                  FROM ((SELECT id, status, priority, next_run_time FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
                          WHERE claimable = 1 AND biz_type = :biz_type AND priority = :priority
                            AND next_run_time >= :since AND (next_run_time > :since OR id > :after)
                          ORDER BY next_run_time, id LIMIT :most)
                        UNION ALL
                        (SELECT id, status, priority, next_run_time FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
                          WHERE claimable = 1 AND biz_type = :biz_type AND priority > :priority
                          ORDER BY priority, next_run_time, id LIMIT :most)) u
                 ORDER BY u.priority, u.next_run_time, u.id LIMIT :most) k
         WHERE k.status = :status
         ORDER BY k.priority, k.next_run_time, k.id LIMIT :limit) w
  STRAIGHT_JOIN sys_pending_tasks t ON t.id = w.id
 ORDER BY w.priority, w.next_run_time, w.id;

-- waiting_of_type_end: the last of so many of them, and how many there were
SELECT w.priority, w.next_run_time, w.id, COUNT(*) OVER () AS seen
  FROM (SELECT u.priority, u.next_run_time, u.id
          FROM ((SELECT priority, next_run_time, id FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
                  WHERE claimable = 1 AND biz_type = :biz_type AND priority = :priority
                    AND next_run_time >= :since AND (next_run_time > :since OR id > :after)
                  ORDER BY next_run_time, id LIMIT :most)
                UNION ALL
                (SELECT priority, next_run_time, id FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
                  WHERE claimable = 1 AND biz_type = :biz_type AND priority > :priority
                  ORDER BY priority, next_run_time, id LIMIT :most)) u
         ORDER BY u.priority, u.next_run_time, u.id LIMIT :most) w
 ORDER BY w.priority DESC, w.next_run_time DESC, w.id DESC LIMIT 1;

-- kinds_lately: of the last of those that run and that have failed for good, how many are of each type
SELECT n.status, n.biz_type, COUNT(*) AS tasks
  FROM ((SELECT status, biz_type FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
          WHERE status = 1 ORDER BY updated_at DESC LIMIT :most)
        UNION ALL
        (SELECT status, biz_type FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
          WHERE status = 4 ORDER BY updated_at DESC LIMIT :most)) n
 GROUP BY n.status, n.biz_type;

-- archived_between: of so many archived tasks of a span of time, the last first, those of one type and status
SELECT t.id, t.biz_type, t.biz_key, t.status, t.priority, t.retry_count, t.max_retries, t.next_run_time, t.version,
       t.worker_id, t.correlation_id, SUBSTR(t.result_msg, 1, 200) AS result_msg, t.created_at, t.updated_at,
       t.archived_at
  FROM (SELECT k.id, k.archived_at
          FROM (SELECT id, biz_type, status, archived_at FROM sys_pending_tasks_history
                 WHERE archived_at >= :since AND archived_at <= :until AND (archived_at < :until OR id < :before)
                 ORDER BY archived_at DESC, id DESC LIMIT :most) k
         WHERE (k.biz_type = :biz_type OR :biz_type = '') AND (k.status = :status OR :status < 0)
         ORDER BY k.archived_at DESC, k.id DESC LIMIT :limit) w
  STRAIGHT_JOIN sys_pending_tasks_history t ON t.id = w.id
 ORDER BY w.archived_at DESC, w.id DESC;

-- audits_of_before: what was done to one thing, the last first
SELECT id, actor, action, subject, detail, request_id, address, created_at
  FROM audit_log FORCE INDEX (idx_audit_subject)
 WHERE subject = :subject AND id < :before
   AND (actor = :actor OR :actor = '') AND (action = :action OR :action = '')
   AND created_at >= :since AND created_at <= :until
 ORDER BY id DESC LIMIT :limit;

-- audits_between: of so many deeds of a span of time, the last first, those of one actor, one action, one kind of thing
SELECT t.id, t.actor, t.action, t.subject, t.detail, t.request_id, t.address, t.created_at
  FROM (SELECT k.id, k.created_at
          FROM (SELECT id, actor, action, subject, created_at FROM audit_log
                 WHERE created_at >= :since AND created_at <= :until AND (created_at < :until OR id < :before)
                 ORDER BY created_at DESC, id DESC LIMIT :most) k
         WHERE (k.actor = :actor OR :actor = '') AND (k.action = :action OR :action = '')
           AND (SUBSTR(k.subject, 1, :kind_length) = :kind OR :kind = '')
         ORDER BY k.created_at DESC, k.id DESC LIMIT :limit) w
  STRAIGHT_JOIN audit_log t ON t.id = w.id
 ORDER BY w.created_at DESC, w.id DESC;

-- deeds_on_letters: who gave dead letters or delivered ones a next generation, in a span of time
SELECT actor, action, detail, created_at FROM audit_log FORCE INDEX (idx_audit_created)
 WHERE created_at >= :since AND created_at <= :until AND subject IN ('dead_letters', 'sagas')
 ORDER BY created_at LIMIT :limit;

-- active_depths: jobs by status, and since when the first of each could have been leased or has been
SELECT status, COUNT(*) AS jobs,
       (CASE WHEN MIN(lease_until) < {now} THEN MIN(lease_until) END) AS oldest, {now} AS now
  FROM webhook_delivery_jobs FORCE INDEX (idx_job_status_lease)
 WHERE status IN ('Pending', 'Leased') GROUP BY status;

-- unapplied_depth: finished jobs that their sagas have not taken in
SELECT COUNT(*) AS jobs, MIN(u.finished_at) AS oldest, {now} AS now
  FROM (SELECT finished_at FROM webhook_delivery_jobs FORCE INDEX (idx_job_unapplied)
         WHERE unapplied = 1 ORDER BY id LIMIT :most) u;

-- due_depth: sagas of one status whose time has come, and since when the first of them waits
SELECT COUNT(*) AS sagas, MIN(d.next_attempt_at) AS oldest, {now} AS now
  FROM (SELECT next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = :status AND next_attempt_at <= {now} ORDER BY next_attempt_at LIMIT :most) d;

-- later_depth: sagas that wait for their next attempt
SELECT COUNT(*) AS sagas
  FROM (SELECT next_attempt_at FROM webhook_delivery_sagas FORCE INDEX (idx_saga_status_retry)
         WHERE status = 'PendingRetry' AND next_attempt_at > {now} ORDER BY next_attempt_at LIMIT :most) d;

-- running_tasks_depth: tasks whose handlers are at work, and since when the first of them gave no sign of life
SELECT COUNT(*) AS tasks, MIN(r.updated_at) AS oldest, {now} AS now
  FROM (SELECT updated_at FROM sys_pending_tasks FORCE INDEX (idx_task_updated)
         WHERE status = 1 ORDER BY updated_at LIMIT :most) r;

-- task_depth: the next type of task of which something waits: how many, how many are due, and since when
SELECT w.biz_type, COUNT(*) AS waiting, SUM(CASE WHEN w.next_run_time <= {now} THEN 1 ELSE 0 END) AS due,
       MIN(CASE WHEN w.next_run_time <= {now} THEN w.next_run_time END) AS oldest, {now} AS now
  FROM (SELECT biz_type, next_run_time FROM sys_pending_tasks FORCE INDEX (idx_task_claim)
         WHERE claimable = 1
           AND biz_type = (SELECT n.biz_type FROM sys_pending_tasks n FORCE INDEX (idx_task_claim)
                            WHERE n.claimable = 1 AND n.biz_type > :after ORDER BY n.biz_type LIMIT 1)
         ORDER BY priority, next_run_time, id LIMIT :most) w
 GROUP BY w.biz_type;

-- first_events_after: when the first event above each of these places was written, where there is one
-- Each place as a number: of one that comes from a table, the whole log would be read up to it.
{each places(position):
    SELECT places.position AS position, created_at FROM events WHERE id > places.position ORDER BY id LIMIT 1};

-- failing_most: whose attempts failed most in the last hours, with what is known of their endpoints
SELECT f.subscription_id, f.delivered, f.failed, f.dead, s.event_type, s.event_domain, s.callback_url, s.description,
       s.paused, s.active, l.window_size, l.failures, l.last_error_code, l.last_failure_at
  FROM (SELECT subscription_id, SUM(delivered) AS delivered, SUM(failed) AS failed, SUM(dead) AS dead
          FROM delivery_totals FORCE INDEX (idx_delivery_total_began)
         WHERE began_at > {now - :seconds} AND subscription_id > 0
         GROUP BY subscription_id HAVING SUM(failed) > 0 ORDER BY failed DESC, subscription_id LIMIT :most) f
  JOIN subscriptions s ON s.id = f.subscription_id
  LEFT JOIN delivery_lanes l ON l.subscription_id = f.subscription_id
 ORDER BY f.failed DESC, f.subscription_id;

-- missing_tasks: events for which a router wrote down a task that is neither waiting nor in the history
SELECT a.event_id, r.task_biz_type AS biz_type
  FROM route_attempts a JOIN routes r ON r.id = a.route_id
 WHERE a.event_id BETWEEN :lo AND :hi AND a.status = 'sent' AND a.route_kind = 'task' AND a.matched > 0
   AND NOT EXISTS (SELECT 1 FROM sys_pending_tasks t
                    WHERE t.biz_type = r.task_biz_type AND t.biz_key = CAST(a.event_id AS CHAR))
   AND NOT EXISTS (SELECT 1 FROM sys_pending_tasks_history h
                    WHERE h.biz_type = r.task_biz_type AND h.biz_key = CAST(a.event_id AS CHAR));
