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

-- missing_tasks: events for which a router wrote down a task that is neither waiting nor in the history
SELECT a.event_id, r.task_biz_type AS biz_type
  FROM route_attempts a JOIN routes r ON r.id = a.route_id
 WHERE a.event_id BETWEEN :lo AND :hi AND a.status = 'sent' AND a.route_kind = 'task' AND a.matched > 0
   AND NOT EXISTS (SELECT 1 FROM sys_pending_tasks t
                    WHERE t.biz_type = r.task_biz_type AND t.biz_key = CAST(a.event_id AS CHAR))
   AND NOT EXISTS (SELECT 1 FROM sys_pending_tasks_history h
                    WHERE h.biz_type = r.task_biz_type AND h.biz_key = CAST(a.event_id AS CHAR));

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
